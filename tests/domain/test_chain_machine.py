"""Whole turns played against chain, ledger and run, the links answering in any way at all."""

from collections import Counter

import msgspec
from hypothesis import event, given, settings
from hypothesis import strategies as st

from domain import events as e
from domain import ledger
from domain.agent import AgentDefinition, Link
from domain.chain.policy import (
    ChainLink,
    ChainState,
    FallbackMode,
    NextLink,
    Retry,
    Stop,
    Verdict,
    after,
    answered,
    begin,
)
from domain.chain.record import commands_for
from domain.commands import (
    AnswerToolCall,
    BeginModelCall,
    CompleteRun,
    CreateRun,
    InvokeTool,
    RecordModelFailure,
    RecordReply,
    RecordToolOutput,
    RunCommand,
    StartRun,
)
from domain.decide import decide
from domain.evolve import evolve, fold
from domain.failure import BY_INTENT, CallFailure, FailureClass, FailureKind, error_of
from domain.ledger import Ledger
from domain.messages import AssistantMessage, ToolCall
from domain.run import Run
from domain.turn import CallModel, TurnLimits, next_action
from tests.domain.facts import QUESTION
from tests.domain.given import RUN_ID

RETRIED = {FailureClass.TRANSIENT, FailureClass.EMPTY, FailureClass.ERROR_PRE}
MOVING = {*RETRIED, FailureClass.UNAVAILABLE}
OWN = {FailureClass.CANCELLED, FailureClass.INTERNAL}


class Fails(msgspec.Struct, frozen=True):
    failure_class: FailureClass
    cut: bool = False

    @property
    def seen(self) -> CallFailure:
        return CallFailure(
            kind=FailureKind.STATUS, message=f"{self.failure_class}!", content_delivered=self.cut
        )


class Replies(msgspec.Struct, frozen=True):
    """With these tool calls; with none it is the answer."""

    tools: tuple[str, ...]
    streamed: bool


class Attempt(msgspec.Struct, frozen=True):
    step: int
    link: Link
    outcome: Fails | Replies


class Turn:
    """A turn as the actor performs it: it calls, asks chain and ledger what that means, and tells the run."""

    def __init__(self, state: ChainState, recover: bool) -> None:
        self.opening = state
        self.recover = recover
        self.state = state
        self.ledger = Ledger()
        self.run = Run(id=RUN_ID)
        self.facts: list[e.RunEvent] = []
        self.attempts: list[Attempt] = []
        self.bodies: Counter[str] = Counter()
        self.asked: dict[Link, Counter[str]] = {}
        self.stop: Stop | None = None
        self._open()

    def _open(self) -> None:
        primary, *fallbacks = (candidate.link for candidate in self.opening.links)
        agent = AgentDefinition(
            name="a", provider=primary.provider, model=primary.model, fallbacks=tuple(fallbacks)
        )
        self._tell(CreateRun(tenant="acme", agent="a", input=(QUESTION,)))
        self._tell(StartRun(host="host-1", definition=agent))
        match begin(self.state):
            case NextLink() | Stop() as outcome:
                self._follow(outcome)

    def cuts(self, step: int) -> list[Attempt]:
        """The calls of a step that broke off in the middle of their answer, where that may be carried on."""
        return [
            attempt
            for attempt in self.attempts
            if attempt.step == step
            and self.recover
            and isinstance(attempt.outcome, Fails)
            and attempt.outcome.cut
            and attempt.outcome.failure_class in MOVING
        ]

    @property
    def over(self) -> bool:
        return self.run.status.ended

    def play(self, outcome: Fails | Replies) -> None:
        """The selected link's next call comes out like this."""
        action = next_action(self.run, TurnLimits())
        assert isinstance(action, CallModel)
        link, step = self.state.link, action.step
        self.attempts.append(Attempt(step, link, outcome))
        self._tell(BeginModelCall(step=step, provider=link.provider, model=link.model))
        if isinstance(outcome, Replies):
            self._reply(step, outcome)
        else:
            failed = RecordModelFailure(step=step, failure_class=outcome.failure_class, failure=outcome.seen)
            self._tell(failed)
            verdict = Verdict(failure_class=outcome.failure_class)
            self._follow(after(self.state, verdict, outcome.seen, recover=self.recover, random=0.5))

    def _reply(self, step: int, reply: Replies) -> None:
        calls = tuple(
            ToolCall(id=f"c{number}", name=tool, arguments="{}") for number, tool in enumerate(reply.tools)
        )
        message = AssistantMessage(content="" if calls else "It ships.", tool_calls=calls)
        self._tell(RecordReply(step=step, message=message, finish=e.FinishReason.STOP))
        for call in calls:
            self._get_result(call)
        self.state = answered(self.state, streamed=reply.streamed)
        if not calls:
            self._tell(CompleteRun())

    def _get_result(self, call: ToolCall) -> None:
        self.asked.setdefault(self.state.link, Counter())[call.name] += 1
        recorded = self.ledger.answer(call.name, call.arguments)
        if recorded is not None:
            self._tell(AnswerToolCall(call_id=call.id, result=recorded))
            return
        self.bodies[call.name] += 1
        self._tell(InvokeTool(call_id=call.id, effect=e.ToolEffect.DESTRUCTIVE, call_key="k"))
        self._tell(RecordToolOutput(call_id=call.id, output="done"))

    def _follow(self, outcome: Retry | NextLink | Stop) -> None:
        self.state = outcome.state
        self.stop = outcome if isinstance(outcome, Stop) else None
        for command in commands_for(outcome):
            self._tell(command)

    def _tell(self, command: RunCommand) -> None:
        facts = decide(self.run, command)
        assert facts, f"{command} added nothing"
        for fact in facts:
            self.run = evolve(self.run, fact)
            self.ledger = ledger.evolve(self.ledger, RUN_ID, fact)
        self.facts.extend(facts)


links = st.lists(st.booleans(), min_size=1, max_size=4).map(
    lambda supporting: tuple(
        ChainLink(link=Link(provider=f"p{place}", model="m"), supports_tools=supports)
        for place, supports in enumerate(supporting)
    )
)
openings = st.builds(ChainState, links=links, needs_tools=st.booleans(), mode=st.sampled_from(FallbackMode))
failures = st.builds(
    Fails,
    st.sampled_from(sorted(MOVING)) | st.sampled_from(FailureClass),
    st.sampled_from([False] * 5 + [True]),
)
tool_replies = st.builds(
    Replies, st.lists(st.sampled_from("ab"), min_size=1, max_size=3).map(tuple), st.booleans()
)
answers = st.builds(Replies, st.just(()), st.booleans())
outcomes = st.lists(failures | tool_replies | failures | tool_replies | answers, max_size=14)


@settings(max_examples=400)
@given(opening=openings, recover=st.booleans(), outcomes=outcomes)
def test_any_turn_keeps_to_the_rules_of_the_chain(
    opening: ChainState, recover: bool, outcomes: list[Fails | Replies]
) -> None:
    turn = Turn(opening, recover)
    for outcome in outcomes:
        if turn.over:
            break
        turn.play(outcome)
    event("exhausted" if turn.stop and turn.stop.exhausted else "stopped" if turn.stop else "not stopped")
    event("an answer was carried on" if any(turn.cuts(a.step) for a in turn.attempts[:-1]) else "none was")
    check_retries(turn)
    check_order(turn)
    check_what_ends(turn)
    check_bodies(turn)
    check_fallbacks_taken(turn)
    check_error(turn)
    check_record(turn)


def check_retries(turn: Turn) -> None:
    """CHAIN-2, 3: at most one retry per link and step, and only of what is worth one."""
    calls: dict[tuple[int, Link], list[Fails | Replies]] = {}
    for attempt in turn.attempts:
        calls.setdefault((attempt.step, attempt.link), []).append(attempt.outcome)
    for made in calls.values():
        assert len(made) <= 2
        for first in made[:-1]:
            assert isinstance(first, Fails)
            assert first.failure_class in RETRIED
            assert not first.cut


def check_order(turn: Turn) -> None:
    """CHAIN-1, 4, 6, 7: links in their order, none again once left, none without the tools needed."""
    order = {candidate.link: place for place, candidate in enumerate(turn.opening.links)}
    places = [order[attempt.link] for attempt in turn.attempts]
    assert places == sorted(places)
    for place in places:
        assert turn.opening.links[place].supports_tools or not turn.opening.needs_tools
    if turn.opening.mode is FallbackMode.RESTART:
        check_no_restart_of_what_was_seen(turn)


def check_no_restart_of_what_was_seen(turn: Turn) -> None:
    streamed = False
    for before, attempt in zip(turn.attempts, turn.attempts[1:], strict=False):
        streamed = streamed or (isinstance(before.outcome, Replies) and before.outcome.streamed)
        assert not streamed or before.link == attempt.link or turn.cuts(attempt.step)


def check_what_ends(turn: Turn) -> None:
    """CHAIN-3, 7, 14: none after an ending class or the answer, and after content only to carry it on."""
    for attempt in turn.attempts[:-1]:
        if isinstance(attempt.outcome, Fails):
            assert attempt.outcome.failure_class in MOVING
            assert turn.recover or not attempt.outcome.cut
        else:
            assert attempt.outcome.tools


def check_bodies(turn: Turn) -> None:
    """CHAIN-6: what an earlier link completed is not run again for a later one that asks for the same."""
    for tool, ran in turn.bodies.items():
        assert ran == next(asked[tool] for asked in turn.asked.values() if asked[tool])


def check_fallbacks_taken(turn: Turn) -> None:
    """CHAIN-11: the links that failed or were skipped, never the one that answers."""
    taken = turn.state.fallbacks_taken
    links = [candidate.link for candidate in turn.opening.links]
    if len(links) == 1:
        assert taken == ()
    elif turn.stop is None:
        assert turn.state.link not in taken
        assert list(taken) == links[: turn.state.position]
    elif turn.stop.exhausted:
        assert list(taken) == links
    else:
        failed = turn.attempts[-1] if turn.attempts else None
        own = failed and isinstance(failed.outcome, Fails) and failed.outcome.failure_class in OWN
        assert list(taken) == links[: turn.state.position + (0 if own else 1)]


def check_error(turn: Turn) -> None:
    """CHAIN-1, 10: exhausted, the error is the first link's and names all; else it is the failure's own."""
    if turn.stop is None:
        return
    failed = [(a.link, a.outcome) for a in turn.attempts if isinstance(a.outcome, Fails)]
    told = turn.stop.error.message
    if not turn.attempts:
        assert turn.stop.error.type == ("chain_exhausted" if turn.stop.exhausted else "no_tool_support")
    elif turn.stop.exhausted:
        first = turn.attempts[0].link
        leaving = [o for link, o in failed if link == first][-1]
        assert told.startswith(error_of(first.provider, leaving.failure_class, leaving.seen).message)
        assert turn.stop.error.type == "chain_exhausted"
        assert len(turn.opening.links) > 1
    else:
        link, outcome = failed[-1]
        cuts = [(cut.link, cut.outcome) for cut in turn.cuts(turn.attempts[-1].step)]
        for cut_link, cut in cuts[:1]:
            if outcome.failure_class not in BY_INTENT and isinstance(cut, Fails):
                link, outcome = cut_link, cut  # what the rest was there to carry on
        own = error_of(link.provider, outcome.failure_class, outcome.seen)
        assert (turn.stop.error.type, turn.stop.error.error_class) == (own.type, own.error_class)
        assert told.startswith(own.message)
    for candidate in turn.state.fallbacks_taken[:-1]:
        assert str(candidate) in told


def check_record(turn: Turn) -> None:
    """CHAIN-10, 11: the run's own facts say the same as the chain."""
    assert fold(RUN_ID, turn.facts) == turn.run
    attempts = [(f.step, f.provider) for f in turn.facts if isinstance(f, e.ModelCallStarted)]
    assert attempts == [(attempt.step, attempt.link.provider) for attempt in turn.attempts]
    from_ledger = Counter(f.tool for f in turn.facts if isinstance(f, e.ToolAnswered))
    assert from_ledger + turn.bodies == sum(turn.asked.values(), Counter[str]())
    switches = [f for f in turn.facts if isinstance(f, e.ModelFallbackUsed)]
    restarting = turn.opening.mode is FallbackMode.RESTART
    order = [candidate.link for candidate in turn.opening.links]
    for switch in switches:
        # An answer that an earlier link has begun is carried on, and nothing starts again.
        place = order.index(switch.fallback)
        begun = any(order.index(cut.link) < place for cut in turn.cuts(switch.step))
        assert switch.restarted == (restarting and switch.failure_class is not None and not begun)
    called = [attempt.link for attempt in turn.attempts]
    assert set(called) <= {turn.opening.links[0].link, *(f.fallback for f in switches)}
    if isinstance(turn.facts[-1], e.RunCompleted):
        assert turn.facts[-1].fallbacks_taken == turn.state.fallbacks_taken
    if turn.stop is not None:
        check_end(turn.facts[-1], turn.stop)


def check_end(end: e.RunEvent, stop: Stop) -> None:
    assert isinstance(end, e.RunFailed)
    assert (end.error, end.error_type) == (stop.error.message, stop.error.type)
    assert end.error_class is stop.error.error_class
    assert end.fallbacks_taken == stop.state.fallbacks_taken
    assert end.refunded == stop.exhausted
