"""What a tree of runs may use: limits, their order, and by how much they can be passed."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import budget as b
from domain import events as e
from domain.failure import ErrorClass
from domain.ids import RunId, Version, run_stream
from domain.messages import Usage
from domain.pricing import Price
from domain.spent import executing_s, spent_by
from tests.domain.facts import CREATED, STARTED, replied, says
from tests.domain.given import RUN_ID

RUNS = [RunId(UUID(int=number)) for number in range(1, 6)]
PRICE = Price(input_per_million=Decimal(1), output_per_million=Decimal(2))


def limits(
    *,
    depth: int = 3,
    runs: int = 0,
    tokens: int = 0,
    cost: str | None = None,
    duration_s: float | None = None,
) -> b.Limits:
    """As an operator writes them."""
    amount = None if cost is None else Decimal(cost)
    return b.limits_of(depth=depth, runs=runs, tokens=tokens, cost=amount, duration_s=duration_s)


def having(spent: b.Charge, **limited: object) -> b.Budget:
    return b.charged(b.Budget(limits=limits(**limited)), spent)  # type: ignore[arg-type]


def refused_by(refusal: b.Refusal | None) -> b.Limit | None:
    return None if refusal is None else refusal.limit


@pytest.mark.parametrize("gone", [0, -1])
def test_zero_or_less_removes_a_limit_but_not_the_depth(gone: int) -> None:
    """BUDGET-1."""
    found = limits(depth=gone, runs=gone, tokens=gone, cost=str(gone), duration_s=float(gone))
    assert found == b.Limits(depth=0)


def test_what_is_not_given_is_no_limit() -> None:
    """BUDGET-1."""
    assert limits(depth=2) == b.Limits(depth=2)


def test_what_is_used_up_to_the_last_token_is_used_up() -> None:
    """BUDGET-2: nothing left is nothing, and not without a limit."""
    assert refused_by(b.refusal_of_work(having(b.Charge(tokens=9), tokens=10), 0)) is None
    assert refused_by(b.refusal_of_work(having(b.Charge(tokens=10), tokens=10), 0)) is b.Limit.TOKENS
    assert (
        refused_by(b.refusal_of_work(having(b.Charge(cost=Decimal("0.5")), cost="0.50"), 0)) is b.Limit.COST
    )
    assert refused_by(b.refusal_of_work(having(b.Charge(), duration_s=2.0), 2.0)) is b.Limit.DURATION


def test_tokens_are_looked_at_first_then_cost_then_time() -> None:
    """BUDGET-2: which limit is named does not depend on luck."""
    everything = b.Charge(tokens=10, cost=Decimal(10))
    assert (
        refused_by(b.refusal_of_work(having(everything, tokens=1, cost="1", duration_s=1.0), 5))
        is b.Limit.TOKENS
    )
    assert refused_by(b.refusal_of_work(having(everything, cost="1", duration_s=1.0), 5)) is b.Limit.COST
    assert refused_by(b.refusal_of_work(having(everything, duration_s=1.0), 5)) is b.Limit.DURATION


def test_tokens_do_not_stop_a_function_node() -> None:
    """BUDGET-5."""
    spent = having(b.Charge(tokens=10, cost=Decimal(10)), tokens=1)
    assert b.refusal_of_node(spent, 0) is None
    assert refused_by(b.refusal_of_node(having(spent.spent.charge, tokens=1, cost="1"), 0)) is b.Limit.COST


def test_a_refusal_names_the_limit_and_the_setting_that_raises_it() -> None:
    """BUDGET-2."""
    refusal = b.refusal_of_work(having(b.Charge(tokens=12), tokens=10), 0)
    assert refusal is not None
    assert refusal.error.type == "run_budget_exceeded"
    assert refusal.error.error_class is ErrorClass.QUOTA_EXCEEDED
    assert refusal.error.message == (
        "the tree of runs has spent 12 of 10 tokens; agent_graph.max_total_tokens raises the limit"
    )


def test_depth_and_number_stop_children_and_nothing_else() -> None:
    """BUDGET-2."""
    deep = b.Budget(limits=limits(depth=1))
    assert b.refusal_of_child(deep, 1) is None
    assert refused_by(b.refusal_of_child(deep, 2)) is b.Limit.DEPTH
    many = b.with_child(b.Budget(limits=limits(runs=1)))
    assert refused_by(b.refusal_of_child(many, 1)) is b.Limit.RUNS
    assert b.refusal_of_work(many, 0) is None


def test_a_child_is_refused_for_its_depth_before_the_number() -> None:
    both = b.with_child(b.Budget(limits=limits(depth=0, runs=1)))
    assert refused_by(b.refusal_of_child(both, 1)) is b.Limit.DEPTH


def test_an_unknown_price_leaves_a_step_to_the_token_limit() -> None:
    """BUDGET-2: what cannot be measured cannot be enforced."""
    unpriced = b.charge_of(replied(1, says("hi"), usage=Usage(input_tokens=3, output_tokens=4)))
    assert unpriced == b.Charge(tokens=7)
    assert b.refusal_of_work(having(unpriced, cost="0.01"), 0) is None
    assert refused_by(b.refusal_of_work(having(unpriced, cost="0.01", tokens=7), 0)) is b.Limit.TOKENS


@pytest.mark.parametrize(
    ("amount", "currency", "counted", "cost"),
    [(Decimal("0.25"), "USD", True, "0.25"), (None, "USD", False, "0"), (Decimal(3), "EUR", False, "0")],
)
def test_only_what_can_be_added_is_counted(
    amount: Decimal | None, currency: str, counted: bool, cost: str
) -> None:
    """BUDGET-3."""
    reported = e.UsageReported(cause="c", kind="render", amount=amount, currency=currency, counted=counted)
    assert b.charge_of(reported) == b.Charge(cost=Decimal(cost))


def test_a_step_is_expected_to_fill_its_output() -> None:
    assert b.estimate_of(100, 50, PRICE) == b.Charge(tokens=150, cost=Decimal("0.0002"))
    assert b.estimate_of(100, None, None) == b.Charge(tokens=100 + b.UNSTATED_OUTPUT_TOKENS)


def test_a_step_waits_while_those_in_flight_may_use_up_what_is_left() -> None:
    budget = b.reserve(having(b.Charge(tokens=40), tokens=100), RUNS[0], b.Charge(tokens=60))
    assert not b.has_room(budget)
    assert b.refusal_of_work(budget, 0) is None, "nothing is spent yet that would refuse it"
    cheaper = b.settle(b.charged(budget, b.Charge(tokens=20)), RUNS[0])
    assert b.has_room(cheaper)


amounts = st.builds(
    b.Charge, tokens=st.integers(0, 60), cost=st.integers(0, 60).map(lambda n: Decimal(n) / 100)
)
moves = st.one_of(
    st.tuples(st.just("begin"), st.sampled_from(RUNS), amounts),
    st.tuples(st.just("end"), st.sampled_from(RUNS), amounts),
    st.tuples(st.just("report"), st.sampled_from(RUNS), amounts),
)


class Playing:
    """A tree whose runs do as they like, within what they are admitted to."""

    def __init__(self, limited: b.Limits) -> None:
        self.budget = b.Budget(limits=limited)
        self.log: list[b.Charge] = []
        self.actual: dict[RunId, b.Charge] = {}
        self.last: RunId | None = None
        self.others: list[RunId] = []
        self.estimates: dict[RunId, b.Charge] = {}
        self.reported = b.Charge()

    def begin(self, run_id: RunId, estimate: b.Charge) -> None:
        refused = b.refusal_of_work(self.budget, 0) is not None or not b.has_room(self.budget)
        if refused or run_id in self.budget.in_flight:
            return
        self.others = list(self.budget.in_flight)
        self.last, self.reported = run_id, b.Charge()
        self.actual = {one: spent for one, spent in self.actual.items() if one in self.others}
        self.estimates[run_id] = estimate
        self.budget = b.reserve(self.budget, run_id, estimate)

    def end(self, run_id: RunId, actual: b.Charge) -> None:
        if run_id in self.budget.in_flight:
            self.actual[run_id] = actual
            self._charge(actual)
            self.budget = b.settle(self.budget, run_id)

    def report(self, _: RunId, amount: b.Charge) -> None:
        self.reported += amount
        self._charge(amount)

    def _charge(self, charge: b.Charge) -> None:
        self.log.append(charge)
        self.budget = b.charged(self.budget, charge)

    def bound(self) -> b.Charge:
        assert self.last is not None
        steps = {one: b.Step(self.estimates[one], self.actual[one]) for one in (self.last, *self.others)}
        return b.overshoot_bound(steps[self.last], [steps[one] for one in self.others], self.reported)


@given(done=st.lists(moves, max_size=60), tokens=st.integers(1, 200), cost=st.integers(1, 200))
def test_a_tree_passes_its_limits_by_no_more_than_what_was_in_flight(
    done: list[tuple[str, RunId, b.Charge]], tokens: int, cost: int
) -> None:
    """BUDGET-2: whatever runs do, and in whichever order, the printed bound holds."""
    playing = Playing(limits(tokens=tokens, cost=str(Decimal(cost) / 100)))
    for what, run_id, amount in done:
        getattr(playing, what)(run_id, amount)
    for run_id in list(playing.budget.in_flight):
        playing.end(run_id, b.Charge(tokens=60, cost=Decimal("0.6")))
    spent = playing.budget.spent.charge
    assert spent == sum(playing.log, b.Charge())
    if playing.last is not None:
        bound = playing.bound()
        assert spent.tokens - tokens < bound.tokens
        assert spent.cost - Decimal(cost) / 100 < bound.cost


AT = datetime(2026, 1, 1, tzinfo=UTC)


def told(*events: tuple[float, e.RunEvent]) -> Sequence[e.Recorded[e.RunEvent]]:
    """A run's stream; each event with the seconds at which it was recorded."""
    return [
        e.Recorded(
            stream_id=run_stream(RUN_ID),
            sequence=Version(number),
            position=number,
            at=AT + timedelta(seconds=seconds),
            tenant="acme",
            event=event,
        )
        for number, (seconds, event) in enumerate(events, 1)
    ]


def ended_by_others(error_type: str) -> e.RunFailed:
    return e.RunFailed(error="gone", error_type=error_type, error_class=ErrorClass.INFRASTRUCTURE)


def test_the_time_that_a_host_was_down_is_not_charged() -> None:
    """BUDGET-7: a run that others closed was at work until the last thing that it wrote itself."""
    reply = replied(1, says("hi"))
    assert executing_s(told((0, CREATED), (5, STARTED), (8, reply), (9, e.RunCompleted(answer="hi")))) == 4
    assert executing_s(told((0, CREATED), (5, STARTED), (8, reply), (900, ended_by_others("orphaned")))) == 3
    resolved = e.RunContinued(by=RUNS[0])
    closed = (900, ended_by_others("orphaned")), (950, resolved)
    assert executing_s(told((0, CREATED), (5, STARTED), (8, reply), *closed)) == 3
    assert executing_s(told((0, CREATED), (9, e.RunCancelled()))) == 0, "it never began"


def test_a_chain_has_spent_what_its_runs_and_all_below_them_have() -> None:
    """BUDGET-7: tokens, cost, children and the time at work of the chain's own runs."""
    child = e.ChildRunStarted(run_id=RUNS[0], agent="helper", cause="c")
    reply = replied(1, says("hi"), usage=Usage(input_tokens=2, output_tokens=3), cost=Decimal("0.1"))
    usage = e.UsageReported(cause="c", kind="render", amount=Decimal("0.05"), currency="USD", counted=True)
    chain = [told((0, CREATED), (1, STARTED), (2, reply), (3, child), (4, usage), (5, e.RunCancelled()))]
    below = [told((3, CREATED), (3, STARTED), (4, reply), (4, e.RunCancelled()))]
    assert spent_by(chain, below) == b.Spent(
        charge=b.Charge(tokens=10, cost=Decimal("0.25")), runs=1, executing_s=4
    )
