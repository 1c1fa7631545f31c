"""Random histories of several runs, interleaved: only facts that decisions really led to."""

from contextlib import suppress
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

from hypothesis import strategies as st

from domain import commands as c
from domain.commands.side import BeginSideCall, RecordSideFailure, RecordSideReply
from domain.decide import decide
from domain.errors import Conflict, NotFound
from domain.events import ContinuationBlock, Event, FinishReason, Recorded, ToolEffect, ToolFailure
from domain.events.side import SidePurpose
from domain.evolve import evolve
from domain.failure import CallFailure, ErrorClass, FailureClass, FailureKind, RunError
from domain.ids import RunId, StreamId, Version, session_stream
from domain.ledger import RecordedResult
from domain.messages import AssistantMessage, ToolCall, Usage
from domain.queueing import BatchItem, QueueSpec, ScheduleFiring, TriggerDelivery
from domain.replay import Replay, ReplayTools
from domain.run import OpenCall, Run
from domain.session import turn_of
from projections.base import Fact
from tests.domain.facts import DEFINITION, QUESTION
from tests.projections.story import NOON

TENANTS = ("acme", "zebra")
_LINKS = st.sampled_from([("primary", "small"), ("backup", "big")])
_TEXTS = st.sampled_from(["It ships.", "null \0 byte", "ünï\U0001f600"])
QUEUES = (
    QueueSpec(),
    QueueSpec(lane="bulk", priority=-5, max_attempts=3, source=BatchItem(batch_id=UUID(int=8), number=2)),
    QueueSpec(source=ScheduleFiring(schedule="nightly", due=NOON)),
    QueueSpec(source=TriggerDelivery(trigger="orders", delivery="d\0")),
)
_ERROR = RunError(message="no link \0 left", type="chain_exhausted", error_class=ErrorClass.PROVIDER)
_DOWN = CallFailure(kind=FailureKind.STATUS, message="overloaded", status=503)
_USAGES = st.builds(
    Usage,
    input_tokens=st.integers(0, 10**6),
    output_tokens=st.integers(0, 10**6),
    cached_input_tokens=st.integers(0, 10**6),
    reasoning_tokens=st.integers(0, 10**6),
)
_COSTS = st.none() | st.decimals(0, 10**6, places=9) | st.sampled_from([Decimal("1E+3"), Decimal("0E-8")])

_REPORTS: st.SearchStrategy[c.RunCommand] = st.builds(
    c.ReportUsage,
    cause=st.just("c\0"),
    kind=st.sampled_from(["render", "speech\0"]),
    amount=_COSTS,
    currency=st.sampled_from([None, "USD", "EUR"]),
    counted=st.booleans(),
)


class _World:
    """What has happened so far."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw
        self.facts: list[Fact] = []
        self.runs = [Run(id=RunId(UUID(int=number + 1))) for number in range(draw(st.integers(1, 4)))]
        self.sequences: dict[UUID, int] = {}
        self.tenants = {run.id: draw(st.sampled_from(TENANTS)) for run in self.runs}
        self.now = NOON
        self.position = 0

    def step(self) -> None:
        number = self.draw(st.integers(0, len(self.runs) - 1))
        run = self.runs[number]
        if run.status.ended:
            self.tell(number, _afterwards(run))
            return
        run = self.tell(number, _next_command(run, self.tenants[run.id]))
        if run.status.ended and run.created and run.created.session_id:
            tenant = self.tenants[run.id]
            self.record(session_stream(tenant, run.created.session_id), tenant, turn_of(run))

    def tell(self, number: int, commands: st.SearchStrategy[c.RunCommand]) -> Run:
        run = self.runs[number]
        with suppress(Conflict, NotFound):
            for event in decide(run, self.draw(commands)):
                run = evolve(run, event)
                self.record(StreamId(run.id), self.tenants[run.id], event)
        self.runs[number] = run
        return run

    def record(self, stream_id: StreamId, tenant: str, event: Event) -> None:
        self.sequences[stream_id] = sequence = self.sequences.get(stream_id, 0) + 1
        self.now += timedelta(minutes=self.draw(st.sampled_from([0, 1, 600])))
        self.position += self.draw(st.integers(1, 3))
        self.facts.append(
            Recorded(
                stream_id=stream_id,
                sequence=Version(sequence),
                position=self.position,
                at=self.now,
                tenant=tenant,
                event=event,
            )
        )


@st.composite
def histories(draw: st.DrawFn) -> list[Fact]:
    """A log of up to four runs of two tenants, some with a session, with holes between positions."""
    world = _World(draw)
    for _ in range(draw(st.integers(5, 60))):
        world.step()
    return world.facts


@st.composite
def paged_histories(draw: st.DrawFn) -> tuple[list[Fact], list[list[Fact]]]:
    """The same with one way to cut it into pages."""
    facts = draw(histories())
    pages, rest = [], facts
    while rest:
        size = draw(st.integers(1, 7))
        pages.append(rest[:size])
        rest = rest[size:]
    return facts, pages


def _next_command(run: Run, tenant: str) -> st.SearchStrategy[c.RunCommand]:
    """Any command that the run would not refuse, with those that lead on before those that end it."""
    if run.created is None:
        return _creations(tenant)
    ends = st.sampled_from(
        [
            c.FailRun(error=_ERROR),
            c.CancelRun(reason="enough"),
            c.CloseAbandoned(error=_ERROR, asked="enough"),
            c.RequestCancel(),
            c.ExhaustAttempts(attempts=1),
        ]
    )
    return st.one_of(_lead_on(run), _lead_on(run), _lead_on(run), ends)


def _afterwards(run: Run) -> st.SearchStrategy[c.RunCommand]:
    """Anything that may be said of a run that has ended, whether there is reason to or not."""
    call_ids = [one.call.id for one in run.open_calls] or ["c1"]
    return st.one_of(
        st.builds(
            c.ResolveTool,
            call_id=st.sampled_from(call_ids),
            output=st.sampled_from(["ship\0ped", "gone"]),
            failed=st.booleans(),
        ),
        st.builds(c.NoteContinued, by=st.just(RunId(UUID(int=77)))),
        st.builds(
            c.NoteBlocked,
            cause=st.sampled_from(ContinuationBlock),
            reason=st.just("no\0body knows"),
            remedy=st.just("find out"),
        ),
    )


def _creations(tenant: str) -> st.SearchStrategy[c.RunCommand]:
    return st.builds(
        c.CreateRun,
        tenant=st.just(tenant),
        agent=st.sampled_from(["support", "sales"]),
        input=st.just((QUESTION,)),
        session_id=st.sampled_from([None, "s1", "s\0"]),
        queue=st.sampled_from([None, *QUEUES]),
        replay=st.sampled_from([None, Replay(run_id=RunId(UUID(int=78)), tools=ReplayTools.RECORDED)]),
    )


def _lead_on(run: Run) -> st.SearchStrategy[c.RunCommand]:
    if run.definition is None:
        return st.just(c.StartRun(host="host-1", definition=DEFINITION))
    if run.calling is not None:
        return _answers(run.calling.step)
    if run.beside.calling is not None:
        return _side_answers()
    if run.open_calls:
        return st.one_of(st.sampled_from(run.open_calls).flatmap(_tool_commands), _REPORTS)
    if run.answer and not run.failed:
        return st.just(c.CompleteRun())
    step = run.step if run.failed else run.step + 1
    own = _LINKS.map(lambda link: c.BeginModelCall(step=step, provider=link[0], model=link[1]))
    beside = _LINKS.map(
        lambda link: BeginSideCall(purpose=SidePurpose.COMPACTION, provider=link[0], model=link[1])
    )
    return st.one_of(own, own, beside)


def _side_answers() -> st.SearchStrategy[c.RunCommand]:
    failure = RecordSideFailure(failure_class=FailureClass.UNAVAILABLE, failure=_DOWN)
    reply = st.builds(
        RecordSideReply, usage=_USAGES, cost=_COSTS, currency=st.sampled_from(["USD", "USD", "EUR"])
    )
    return st.one_of(reply, reply, st.just(failure))


def _answers(step: int) -> st.SearchStrategy[c.RunCommand]:
    failure = c.RecordModelFailure(step=step, failure_class=FailureClass.UNAVAILABLE, failure=_DOWN)
    reply = st.builds(
        c.RecordReply,
        step=st.just(step),
        message=_replies(),
        finish=st.just(FinishReason.STOP),
        usage=_USAGES,
        cost=_COSTS,
        currency=st.sampled_from(["USD", "USD", "EUR"]),
    )
    told = _TEXTS.map(lambda text: c.RecordText(step=step, text=text))
    return st.one_of(reply, reply, told, st.just(failure))


def _replies() -> st.SearchStrategy[AssistantMessage]:
    calls = st.lists(st.sampled_from(["c1", "c2", "c\0"]), min_size=1, max_size=3, unique=True)
    return st.one_of(
        _TEXTS.map(lambda text: AssistantMessage(content=text)),
        calls.map(lambda ids: AssistantMessage(tool_calls=tuple(map(_tool_call, ids)))),
    )


def _tool_call(call_id: str) -> ToolCall:
    return ToolCall(id=call_id, name="get_order", arguments='{"id":"\0"}')


def _tool_commands(open_call: OpenCall) -> st.SearchStrategy[c.RunCommand]:
    call_id = open_call.call.id
    refused = c.RecordToolFailure(call_id=call_id, failure=ToolFailure.UNKNOWN_TOOL, output="no such tool")
    if not open_call.invoking:
        start = c.InvokeTool(call_id=call_id, effect=ToolEffect.WRITE, call_key=f"key-{call_id}")
        result = RecordedResult(run_id=RunId(UUID(int=9)), call_id="c0", output="ship\0ped")
        answered = c.AnswerToolCall(call_id=call_id, result=result)
        return st.sampled_from([start, start, start, refused, answered])
    return st.sampled_from(
        [
            c.RecordToolOutput(call_id=call_id, output="ship\0ped", duration_ms=3, truncated=True),
            c.RecordToolFailure(call_id=call_id, failure=ToolFailure.RAISED, output="boom", duration_ms=4),
            c.RecordUnknownOutcome(call_id=call_id, reason="did not stop"),
        ]
    )
