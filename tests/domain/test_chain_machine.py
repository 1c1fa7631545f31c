"""Whole turns played against the chain and the ledger, the links answering in any way at all."""

from collections import Counter

import msgspec
from hypothesis import event, given, settings
from hypothesis import strategies as st

from domain.agent import Link
from domain.chain import ChainLink, ChainState, FallbackMode, NextLink, Retry, Stop, after, answered, begin
from domain.failure import CallFailure, FailureClass, FailureKind, error_of
from domain.ledger import Ledger, RecordedResult
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
    """A turn as the runner performs it: it calls, and asks the chain and the ledger what that means."""

    def __init__(self, state: ChainState) -> None:
        self.opening = state
        self.state = state
        self.ledger = Ledger()
        self.step = 1
        self.attempts: list[Attempt] = []
        self.bodies: Counter[str] = Counter()
        self.asked: dict[Link, Counter[str]] = {}
        self.stop: Stop | None = None
        self.done = False
        match begin(state):
            case NextLink(state=moved):
                self.state = moved
            case Stop() as stop:
                self._end(stop)

    @property
    def over(self) -> bool:
        return self.done or self.stop is not None

    def play(self, outcome: Fails | Replies) -> None:
        """The selected link's next call comes out like this."""
        assert not self.over
        self.attempts.append(Attempt(self.step, self.state.link, outcome))
        if isinstance(outcome, Replies):
            self._reply(outcome)
        else:
            self._fail(outcome)

    def _reply(self, reply: Replies) -> None:
        asked = self.asked.setdefault(self.state.link, Counter())
        for tool in reply.tools:
            asked[tool] += 1
            recorded = self.ledger.answer(tool, "{}")
            if recorded is not None:
                self.ledger = self.ledger.after_answer(tool, "{}")
                continue
            self.bodies[tool] += 1
            self.ledger = self.ledger.after_result(
                tool, "{}", RecordedResult(run_id=RUN_ID, call_id=f"c{self.step}", output="done")
            )
        self.state = answered(self.state, streamed=reply.streamed)
        self.done = not reply.tools
        self.step += 1

    def _fail(self, fails: Fails) -> None:
        match after(self.state, fails.failure_class, fails.seen, random=0.5):
            case Retry(state=state):
                self.state = state
            case NextLink(state=state):
                self.state = state
                self.ledger = self.ledger.for_next_link()
            case Stop() as stop:
                self._end(stop)

    def _end(self, stop: Stop) -> None:
        self.stop = stop
        self.state = stop.state


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
@given(opening=openings, outcomes=outcomes)
def test_any_turn_keeps_to_the_rules_of_the_chain(
    opening: ChainState, outcomes: list[Fails | Replies]
) -> None:
    turn = Turn(opening)
    for outcome in outcomes:
        if turn.over:
            break
        turn.play(outcome)
    event("exhausted" if turn.stop and turn.stop.exhausted else "stopped" if turn.stop else "not stopped")
    check_retries(turn)
    check_order(turn)
    check_what_ends(turn)
    check_bodies(turn)
    check_fallbacks_taken(turn)
    check_error(turn)


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
        assert not streamed or before.link == attempt.link


def check_what_ends(turn: Turn) -> None:
    """CHAIN-3, 7: no call after an ending class, none after content, none after the answer."""
    for attempt in turn.attempts[:-1]:
        if isinstance(attempt.outcome, Fails):
            assert attempt.outcome.failure_class in MOVING
            assert not attempt.outcome.cut
        else:
            assert attempt.outcome.tools


def check_bodies(turn: Turn) -> None:
    """CHAIN-6: what an earlier link completed is not run again for a later one that asks for the same."""
    for tool, ran in turn.bodies.items():
        assert ran == max(asked[tool] for asked in turn.asked.values())


def check_fallbacks_taken(turn: Turn) -> None:
    """CHAIN-11: the links that failed or were skipped, never the one that answers."""
    taken = turn.state.fallbacks_taken
    links = [candidate.link for candidate in turn.opening.links]
    if turn.stop is None:
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
        own = error_of(link.provider, outcome.failure_class, outcome.seen)
        assert (turn.stop.error.type, turn.stop.error.error_class) == (own.type, own.error_class)
        assert told.startswith(own.message)
    for candidate in turn.state.fallbacks_taken[:-1]:
        assert str(candidate) in told
