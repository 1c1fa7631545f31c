"""Runs that nobody waits for: created, and left to whichever worker comes first."""

from typing import Any

import msgspec

from app.store.event_log import Change
from domain.commands import CreateRun, FailRun
from domain.decide import decide
from domain.events import RunCreated
from domain.evolve import fold
from domain.failure import RunError
from domain.ids import RunId, Version, run_stream
from domain.messages import Message
from domain.queueing import QueueSpec
from domain.run import Run

SUBMISSION_PATIENCE_S = 2.0
"""As long as any other submission waits for a store that has just gone (EVENT-8)."""


def queued_run(
    run_id: RunId,
    tenant: str,
    agent: str,
    messages: tuple[Message, ...],
    queue: QueueSpec,
    *,
    parameters: dict[str, Any],
    session_id: str | None = None,
) -> Change:
    """What the log is to hold of it. Raise InvalidInput for messages that no model would take."""
    create = CreateRun(
        tenant=tenant,
        agent=agent,
        input=messages,
        parameters=parameters,
        session_id=session_id,
        queue=queue,
    )
    return Change(
        stream_id=run_stream(run_id),
        expected=Version(0),
        tenant=tenant,
        events=tuple(decide(Run(id=run_id), create)),
    )


def failed_at_once(queued: Change, error: RunError) -> Change:
    """The same run, ended before any worker takes it."""
    run_id = RunId(queued.stream_id)
    run = fold(run_id, (event for event in queued.events if isinstance(event, RunCreated)))
    return msgspec.structs.replace(queued, events=(*queued.events, *decide(run, FailRun(error=error))))
