"""A run's end as one answer, for a client that waited for it."""

from collections.abc import Sequence
from contextlib import aclosing
from typing import NamedTuple

import msgspec
from aiohttp import web

from app.http.display import encode
from app.http.negotiation import JSON
from app.http.problems import MEDIA_TYPE as PROBLEM
from app.http.problems import Problem, problem, response_of
from app.http.replies import reply
from app.http.watching import until_end
from app.idempotency.answer import Answer, Form
from app.store.event_log import EventLog
from domain.criterion import JUDGE_UNAVAILABLE
from domain.events import Event, Recorded, RunCompleted, RunEvent, RunFailed
from domain.failure import ErrorClass
from domain.ids import RunId
from domain.run import RunStatus
from projections.base import BrokenStream
from projections.run_record import RunRecord, record_of

_STATUS_OF_CLASS = {
    ErrorClass.PROVIDER: 502,
    ErrorClass.QUOTA_EXCEEDED: 429,
    ErrorClass.TIMEOUT: 504,
    ErrorClass.CONTENT_FILTERED: 422,
    ErrorClass.CONTENT_BLOCKED: 422,
    ErrorClass.INFRASTRUCTURE: 503,
    ErrorClass.INVALID: 422,
    ErrorClass.INTERNAL: 500,
}
_UNAVAILABLE = frozenset({"provider_unavailable", "chain_exhausted", JUDGE_UNAVAILABLE})
_RETRY_AFTER_S = 1.0
"""What is said where nobody knows."""


class RunAnswer(RunRecord, frozen=True, kw_only=True):
    """The run as it ended, and its answer. A run that waits for a person has none, and says so with a 202."""

    answer: str | None


class Ended(NamedTuple):
    """A run that is over. `retry_after_s`: when another may fare better, where somebody knows (BREAK-2)."""

    run: RunAnswer
    retry_after_s: float | None


async def end_of(log: EventLog, run_id: RunId) -> Ended:
    """Wait for the run's end."""
    recorded: list[Recorded[Event]] = []
    async with aclosing(until_end(log, run_id, 0)) as batches:
        async for batch in batches:
            recorded += [frame for frame in batch if isinstance(frame, Recorded)]
    return ended_as(recorded)


def ended_as(recorded: Sequence[Recorded[Event]]) -> Ended:
    """What the run has come to by these, all of its events up to its end."""
    record = record_of(recorded)
    if record is None:
        raise BrokenStream("a run was followed to nothing")
    last = recorded[-1].event
    answer = last.answer if isinstance(last, RunCompleted) else None
    run = RunAnswer(**msgspec.structs.asdict(record), answer=answer)
    return Ended(run, last.retry_after_s if isinstance(last, RunFailed) else None)


def respond(ended: Ended, request: web.Request) -> web.Response:
    """The run as JSON. Without an answer it is a problem, which carries the run so that nothing is lost."""
    refusal = _refusal(ended)
    return reply(ended.run, status=_status(ended)) if refusal is None else response_of(refusal, request)


def _rendered(recorded: Sequence[Recorded[RunEvent]]) -> Answer:
    """The same as `respond`, but for what a problem says of the request."""
    ended = ended_as(recorded)
    refusal = _refusal(ended)
    if refusal is None:
        return Answer(status=_status(ended), content_type=JSON, body=encode(ended.run))
    return Answer(status=refusal.status, content_type=PROBLEM, body=encode(refusal))


RUN = Form(name="run", render=_rendered)
"""How the run endpoint answers a request with a key."""


def _status(ended: Ended) -> int:
    """Of a run that did not fail. One that waits for a person was accepted, and is not done."""
    return 202 if ended.run.status.awaits else 200


def _refusal(ended: Ended) -> Problem | None:
    match ended.run.status:
        case RunStatus.FAILED:
            return _failure(ended.run, ended.retry_after_s)
        case RunStatus.CANCELLED:
            return problem(409, "run_cancelled", "The run was cancelled.", run=ended.run)
        case _:
            return None


def status_of(error_type: str | None, error_class: ErrorClass) -> int:
    """The status that tells of a run that failed like this."""
    if error_type in _UNAVAILABLE and error_class is ErrorClass.PROVIDER:
        return 503
    return _STATUS_OF_CLASS[error_class]


def _failure(run: RunAnswer, retry_after_s: float | None) -> Problem:
    status = status_of(run.error_type, ErrorClass(run.error_class or ErrorClass.INTERNAL))
    return problem(
        status,
        run.error_type or "run_failed",
        run.error or "The run failed.",
        run=run,
        retry_after_s=(retry_after_s or _RETRY_AFTER_S) if status == 503 else None,
    )
