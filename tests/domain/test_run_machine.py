"""A run under any sequence of commands, with crashes between them."""

import contextlib
from decimal import Decimal
from typing import Any, assert_never
from uuid import UUID

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from domain import events as e
from domain.agent import AgentDefinition, Link
from domain.codec import Codec
from domain.commands import (
    AnswerToolCall,
    AwaitApproval,
    BeginModelCall,
    CancelQueuedRun,
    CancelRun,
    CloseAbandoned,
    CompleteRun,
    CreateRun,
    ExhaustAttempts,
    ExhaustChain,
    FailRun,
    InvokeTool,
    NoteBlocked,
    NoteChild,
    NoteContinued,
    Nudge,
    RecordModelFailure,
    RecordQueueing,
    RecordReply,
    RecordText,
    RecordToolFailure,
    RecordToolOutput,
    RecordUnknownOutcome,
    ReportUsage,
    RequestCancel,
    ResolveTool,
    RetryModelCall,
    RunCommand,
    SkipLink,
    StartRun,
    UseFallback,
)
from domain.compaction import Summarise, UseSummary
from domain.criterion import AskJudge, TellUnmet
from domain.decide import InvalidInput, decide
from domain.errors import Conflict, NotFound
from domain.events.side import AnswerSentBack, CriterionJudged
from domain.evolve import evolve, fold
from domain.failure import ErrorClass, FailureClass, RunError
from domain.ids import RunId
from domain.ledger import RecordedResult
from domain.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage, flaw_in
from domain.run import Run, RunStatus
from domain.session import turn_of
from domain.turn import (
    Action,
    AskApproval,
    CallModel,
    CallTools,
    Complete,
    GiveUp,
    Rest,
    TellMissing,
    TurnLimits,
    next_action,
)
from tests.domain.beside import JUDGED, performed_beside, side_commands
from tests.domain.facts import QUESTION, says
from tests.domain.given import RUN_ID
from tests.domain.strategies import call_failures, replies

LIMITS = TurnLimits(max_steps=4)
CODEC = Codec()
ERROR = RunError(message="no provider left", type="provider_unavailable", error_class=ErrorClass.PROVIDER)
RESULTS = e.ToolReturned | e.ToolFailed | e.ToolAnswered
LINKS = [Link(provider=name, model="m") for name in ("one", "two", "three")]
AGENT = AgentDefinition(name="support", provider="one", model="m", fallbacks=tuple(LINKS[1:]))
RECORDED = RecordedResult(run_id=RUN_ID, call_id="c0", output="charged")

steps = st.integers(0, LIMITS.max_steps + 1)
call_ids = st.sampled_from(["c1", "c2", "c3", "c9"])
inputs = st.sampled_from([(QUESTION,), (QUESTION, says("It is")), ()])


def command_of(kind: type[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[RunCommand]:
    return st.builds(kind, **fields)


commands: st.SearchStrategy[RunCommand] = st.one_of(
    side_commands(),
    command_of(CreateRun, tenant=st.just("acme"), agent=st.just("support"), input=inputs),
    command_of(StartRun, host=st.just("host-1"), definition=st.just(AGENT)),
    command_of(BeginModelCall, step=steps, provider=st.sampled_from(["one", "two"]), model=st.just("m")),
    command_of(RecordText, step=steps, text=st.sampled_from(["", "It"])),
    command_of(RecordReply, step=steps, message=replies(), finish=st.sampled_from(e.FinishReason)),
    command_of(
        RecordModelFailure,
        step=steps,
        failure_class=st.sampled_from(FailureClass),
        failure=call_failures(),
    ),
    command_of(InvokeTool, call_id=call_ids, effect=st.sampled_from(e.ToolEffect), call_key=st.just("k")),
    command_of(RecordToolOutput, call_id=call_ids, output=st.just("shipped")),
    command_of(
        RecordToolFailure,
        call_id=call_ids,
        failure=st.sampled_from(e.ToolFailure),
        output=st.just("no"),
    ),
    command_of(RecordUnknownOutcome, call_id=call_ids, reason=st.just("did not stop")),
    command_of(RecordQueueing, step=steps),
    command_of(RetryModelCall, wait_ms=st.just(0)),
    command_of(SkipLink, link=st.sampled_from(LINKS), reason=st.just("no_tool_support")),
    command_of(UseFallback, fallback=st.sampled_from(LINKS), reason=st.just(""), restarted=st.booleans()),
    command_of(ExhaustChain, error=st.just(ERROR)),
    command_of(AnswerToolCall, call_id=call_ids, result=st.just(RECORDED)),
    command_of(NoteChild, run_id=st.just(RunId(UUID(int=5))), agent=st.just("helper"), cause=call_ids),
    st.builds(ReportUsage, cause=call_ids, kind=st.just("render"), amount=st.just(Decimal("0.25"))),
    command_of(RequestCancel),
    command_of(CompleteRun),
    command_of(FailRun, error=st.just(ERROR)),
    command_of(CancelRun),
    command_of(CloseAbandoned, error=st.just(ERROR), asked=st.sampled_from([None, "", "enough"])),
    command_of(CancelQueuedRun),
    command_of(ExhaustAttempts, attempts=st.just(1)),
    command_of(ResolveTool, call_id=call_ids, output=st.sampled_from(["charged", "not charged"])),
    command_of(NoteContinued, by=st.sampled_from([RunId(UUID(int=1)), RunId(UUID(int=2))])),
    command_of(
        NoteBlocked,
        cause=st.sampled_from(e.ContinuationBlock),
        reason=st.just("nobody knows"),
        remedy=st.just("find out"),
    ),
)


class RunMachine(RuleBasedStateMachine):
    """Told anything at all, a run stays a run."""

    def __init__(self) -> None:
        super().__init__()
        self.run = Run(id=RUN_ID)
        self.facts: list[e.RunEvent] = []
        self.stored: list[tuple[str, bytes]] = []

    def tell(self, command: RunCommand) -> None:
        """Do as the actor does: decide, evolve, write."""
        before = msgspec.structs.replace(self.run)
        facts = decide(self.run, command)
        assert self.run == before, "deciding changed the run"
        if before.status.ended:
            assert all(isinstance(fact, e.AfterEnd) for fact in facts), "a closed run was rewritten"
        for fact in facts:
            self.run = evolve(self.run, fact)
            self.facts.append(fact)
            self.stored.append(CODEC.encode(fact))
        self.check_repetition(command)

    def check_repetition(self, command: RunCommand) -> None:
        """The same news again adds nothing, or is refused. Only text, children and reports may come twice."""
        if isinstance(command, RecordText | NoteChild | ReportUsage):
            return
        with contextlib.suppress(Conflict):
            assert decide(self.run, command) == []

    @initialize(
        started=st.booleans(), input_ends_in_a_reply=st.booleans(), agent=st.sampled_from([AGENT, JUDGED])
    )
    def open(self, started: bool, input_ends_in_a_reply: bool, agent: AgentDefinition) -> None:
        messages = (QUESTION, says("It is")) if input_ends_in_a_reply else (QUESTION,)
        self.tell(CreateRun(tenant="acme", agent="support", input=messages))
        if started:
            self.tell(StartRun(host="host-1", definition=agent))

    @rule(command=commands)
    def anything(self, command: RunCommand) -> None:
        known = self.run
        try:
            self.tell(command)
        except (Conflict, NotFound, InvalidInput):
            assert self.run is known

    @rule(told=st.lists(st.sampled_from(["It ", "ships."]), max_size=2), reply=replies())
    @precondition(lambda self: self.run.calling is not None)
    def the_model_replies(self, told: list[str], reply: AssistantMessage) -> None:
        for text in told:
            self.tell(RecordText(step=self.run.step, text=text))
        ids = {call.id for call in reply.tool_calls}
        if (reply.content or reply.tool_calls) and len(ids) == len(reply.tool_calls):
            self.tell(RecordReply(step=self.run.step, message=reply, finish=e.FinishReason.STOP))
            assert self.run.transcript[-1] == reply

    @rule(data=st.data(), well=st.booleans())
    @precondition(lambda self: self.run.open_calls and not self.run.status.ended)
    def a_tool_ends(self, data: st.DataObject, well: bool) -> None:
        call_id = data.draw(st.sampled_from([c.call.id for c in self.run.open_calls]))
        self.tell(InvokeTool(call_id=call_id, effect=e.ToolEffect.WRITE, call_key="k"))
        if well:
            self.tell(RecordToolOutput(call_id=call_id, output="shipped"))
        else:
            self.tell(RecordToolFailure(call_id=call_id, failure=e.ToolFailure.RAISED, output="no"))

    @rule()
    def do_what_comes_next(self) -> None:
        """Whatever the plan asks for is accepted, and moves the run on."""
        action = next_action(self.run, LIMITS)
        written = len(self.facts)
        for command in performed(action):
            self.tell(command)
        assert len(self.facts) > written or isinstance(action, Rest | CallTools)

    @rule()
    def crash(self) -> None:
        """All that was in memory is gone; what was written is read back."""
        recovered = fold(RUN_ID, [read(topic, payload) for topic, payload in self.stored])
        assert recovered == self.run
        self.run = recovered

    @invariant()
    def the_version_counts_the_facts(self) -> None:
        assert self.run.version == len(self.facts)

    @invariant()
    def a_closed_run_stays_what_it_was(self) -> None:
        """CONT-5: what may follow the end changes nothing about it."""
        kinds = [isinstance(fact, e.RunEnd) for fact in self.facts]
        assert kinds.count(True) == self.run.status.ended
        if self.run.status.ended:
            end = kinds.index(True) + 1
            assert all(isinstance(fact, e.AfterEnd) for fact in self.facts[end:])
            assert fold(RUN_ID, self.facts[:end]).status is self.run.status
            assert turn_of(fold(RUN_ID, self.facts[:end])) == turn_of(self.run)

    @invariant()
    def a_run_is_continued_once_and_each_call_resolved_once(self) -> None:
        assert sum(isinstance(fact, e.RunContinued) for fact in self.facts) <= 1
        resolved = [fact.call_id for fact in self.facts if isinstance(fact, e.ToolResolved)]
        assert len(resolved) == len(set(resolved))

    @invariant()
    def every_call_is_invoked_and_answered_at_most_once(self) -> None:
        asked: dict[str, list[str]] = {}
        for fact in self.facts:
            match fact:
                case e.ModelReplied(message=message):
                    assert [done for done in asked.values() if done[-1:] != ["result"]] == []
                    asked = {call.id: [] for call in message.tool_calls}
                case e.ToolInvoking(call_id=call_id):
                    assert asked[call_id] == []
                    asked[call_id].append("invoking")
                case e.ToolReturned(call_id=call_id):
                    assert asked[call_id] == ["invoking"]
                    asked[call_id].append("result")
                case e.ToolFailed(call_id=call_id):
                    assert "result" not in asked[call_id]
                    asked[call_id].append("result")
                case e.ToolAnswered(call_id=call_id):
                    assert asked[call_id] == []
                    asked[call_id].append("result")

    @invariant()
    def a_step_has_one_reply_and_its_attempts_count_up(self) -> None:
        replied = [fact.step for fact in self.facts if isinstance(fact, e.ModelReplied)]
        assert replied == list(range(1, len(replied) + 1))
        begun = [(f.step, f.attempt) for f in self.facts if isinstance(f, e.ModelCallStarted)]
        assert begun == sorted(set(begun))

    @invariant()
    def a_step_has_one_retry_per_switch_and_no_call_follows_the_last_link(self) -> None:
        spent = False
        for place, fact in enumerate(self.facts):
            if isinstance(fact, e.ModelReplied | e.ModelFallbackUsed):
                spent = False
            elif isinstance(fact, e.ModelCallRetried):
                assert not spent
                spent = True
            elif isinstance(fact, e.ChainExhausted):
                later = self.facts[place + 1 :]
                assert [
                    f for f in later if not isinstance(f, e.RunCancelRequested | e.RunEnd | e.AfterEnd)
                ] == []
        refunds = [fact.refunded for fact in self.facts if isinstance(fact, e.RunFailed)]
        exhausted = any(isinstance(fact, e.ChainExhausted) for fact in self.facts)
        assert refunds == [exhausted] * len(refunds)

    def since_restart(self) -> list[e.RunEvent]:
        """The facts of the turn as its present link has it."""
        begun = 0
        for place, fact in enumerate(self.facts):
            if isinstance(fact, e.ModelFallbackUsed) and fact.restarted:
                begun = place
        return self.facts[begun:]

    @invariant()
    def the_turn_is_history_that_every_provider_takes(self) -> None:
        assert flaw_in(turn_of(self.run).messages) is None
        results = [m.tool_call_id for m in self.run.transcript if isinstance(m, ToolMessage)]
        assert len(results) == sum(isinstance(fact, RESULTS) for fact in self.since_restart())

    @invariant()
    def the_answer_is_the_last_reply(self) -> None:
        replied = [fact.message.content for fact in self.facts if isinstance(fact, e.ModelReplied)]
        answers = [fact.answer for fact in self.facts if isinstance(fact, e.RunCompleted)]
        assert answers == replied[-1:] * len(answers)
        assert "" not in answers

    @invariant()
    def an_answer_with_a_criterion_is_given_when_it_is_known_to_be_met(self) -> None:
        """CHAIN-13."""
        if self.run.status is RunStatus.COMPLETED and self.run.definition == JUDGED:
            verdicts = [f for f in self.facts if isinstance(f, CriterionJudged | e.ModelReplied)]
            assert isinstance(verdicts[-1], CriterionJudged)
            assert verdicts[-1].met
        sent_back = [fact.round for fact in self.facts if isinstance(fact, AnswerSentBack)]
        assert sent_back == list(range(1, len(sent_back) + 1))

    @invariant()
    def what_is_called_besides_is_no_part_of_the_agents_chain(self) -> None:
        """CHAIN-13."""
        own = [fact for fact in self.facts if not isinstance(fact, e.SideEvent)]
        assert fold(RUN_ID, own).standing == self.run.standing

    @invariant()
    def the_plan_of_a_running_run_is_never_empty_handed(self) -> None:
        action = next_action(self.run, LIMITS)
        calling = self.run.calling or self.run.beside.calling
        waits = self.run.status is not RunStatus.RUNNING or calling is not None
        assert isinstance(action, Rest) == waits


def read(topic: str, payload: bytes) -> Any:
    return CODEC.decode(topic, payload)


def awaited(call: ToolCall) -> e.AwaitedCall:
    return e.AwaitedCall(
        call_id=call.id, tool=call.name, arguments=call.arguments, effect=e.ToolEffect.DESTRUCTIVE
    )


def performed(action: Action) -> list[RunCommand]:  # noqa: C901 - one flat dispatch
    """What the actor would begin."""
    match action:
        case CallModel(step=step):
            return [BeginModelCall(step=step, provider="one", model="m")]
        case CallTools(calls=calls):
            return [InvokeTool(call_id=c.id, effect=e.ToolEffect.READ, call_key="k") for c in calls]
        case AskApproval(calls=calls):
            return [AwaitApproval(calls=tuple(awaited(call) for call in calls))]
        case Complete():
            return [CompleteRun()]
        case GiveUp(error=error):
            return [FailRun(error=error)]
        case TellMissing(missing=missing):
            return [Nudge(missing=missing, message="go on")]
        case UseSummary() | Summarise() | AskJudge() | TellUnmet():
            return performed_beside(action)
        case Rest():
            return []
        case _:
            assert_never(action)


RunMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=30)
test_a_run_told_anything_stays_a_run = RunMachine.TestCase


def test_a_run_that_was_never_opened_takes_nothing_but_its_creation() -> None:
    run = Run(id=RUN_ID)
    assert next_action(run, LIMITS) == Rest()
    assert turn_of(run).messages == ()
    assert len(decide(run, CreateRun(tenant="t", agent="a", input=(UserMessage(content="hi"),)))) == 1
