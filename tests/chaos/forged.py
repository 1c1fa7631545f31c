"""Evidence made by hand: a history that keeps every promise, to be broken in one place by a test."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec

from app.http.display import frame_data
from domain import events as e
from domain.agent import AgentDefinition
from domain.failure import ErrorClass
from domain.ids import RunId, StreamId, Version
from domain.messages import AssistantMessage, ToolCall, UserMessage
from ops.chaos.evidence import Body, Evidence, Row
from ops.chaos.plan import Plan
from ops.chaos.received import Received
from ops.chaos.wall import Called
from ops.chaos.workload import Submission, Way

RUN, OTHER = UUID(int=1), UUID(int=2)
OWNER, STRANGER = UUID(int=100), UUID(int=200)
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
PLAN = Plan(number=7)
CALL = ToolCall(id="call_1", name="refund", arguments="{}")
PID = 4711

CREATED = e.RunCreated(
    tenant="default",
    kind=e.RunKind.AGENT,
    agent="worker",
    input=(UserMessage(content=PLAN.message),),
    session_id="s",
)
STARTED = e.RunStarted(
    host=f"machine-{PID}-0a1b2c3d",
    definition=AgentDefinition(name="worker", provider="primary", model="first"),
)
CALLED = e.ModelCallStarted(step=1, attempt=1, provider="primary", model="first")
REPLIED = e.ModelReplied(
    step=1,
    provider="primary",
    model="first",
    message=AssistantMessage(content="", tool_calls=(CALL,)),
    finish=e.FinishReason.TOOL_CALLS,
)
INVOKING = e.ToolInvoking(
    call_id=CALL.id, tool=CALL.name, arguments="{}", effect=e.ToolEffect.DESTRUCTIVE, call_key="tk_1"
)
RETURNED = e.ToolReturned(call_id=CALL.id, tool=CALL.name, output="done")
COMPLETED = e.RunCompleted(answer="There you are.")
ORPHANED = e.RunFailed(
    error="nobody answers for it", error_type="orphaned", error_class=ErrorClass.INFRASTRUCTURE
)

WHOLE = (CREATED, STARTED, CALLED, REPLIED, INVOKING, RETURNED, COMPLETED)


def second(number: float) -> float:
    """That many seconds after the beginning: event n of a forged stream is recorded in second n."""
    return (BEGINNING + timedelta(seconds=number)).timestamp()


def rows(
    events: Sequence[e.Event], stream_id: UUID = RUN, writers: Sequence[UUID] = (), position: int = 0
) -> tuple[Row, ...]:
    """A stream, all by its owner unless said otherwise."""
    by = writers or [OWNER] * len(events)
    return tuple(
        Row(
            recorded=e.Recorded(
                stream_id=StreamId(stream_id),
                sequence=Version(number),
                position=position + number,
                at=BEGINNING + timedelta(seconds=number),
                tenant="default",
                event=event,
            ),
            writer=writer,
        )
        for number, (event, writer) in enumerate(zip(events, by, strict=True), 1)
    )


TURN = rows([e.SessionTurnAdded(run_id=RunId(RUN), messages=())], UUID(int=50))


def body(what: str, at: float, **changes: Any) -> Body:
    """A line of the refund's body."""
    line = Body(
        what=what,
        tool="refund",
        order="7-0-0",
        run_id=RUN,
        call_id=CALL.id,
        call_key="tk_1",
        pid=PID,
        at=second(at),
    )
    return msgspec.structs.replace(line, **changes)


BODIES = (body("began", 5.1), body("ended", 5.5))
ASKED = Called(plan=7, step=1, model="first", caller="host0-1", at=second(3.1))


def evidence(**changes: Any) -> Evidence:
    """One run that did everything right, but for `changes`."""
    whole = Evidence(
        streams={RUN: rows(WHOLE), UUID(int=50): TURN},
        bodies=BODIES,
        calls=(ASKED,),
        received=Received(),
        submissions={7: Submission(at_s=0, way=Way.STREAM, plan=PLAN, host=0)},
        callers={PID: "host0-1"},
    )
    return msgspec.structs.replace(whole, **changes)


def with_run(*events: e.Event, writers: Sequence[UUID] = (), **changes: Any) -> Evidence:
    """The same with another history of the run, which did not become part of its conversation."""
    return evidence(streams={RUN: rows(events, writers=writers)}, **changes)


def frame(row: Row) -> dict[str, Any]:
    """What a watcher is sent of it."""
    told: dict[str, Any] = msgspec.json.decode(frame_data(RunId(RUN), row.recorded, 65536))
    return told
