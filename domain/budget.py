"""What one tree of runs may use, and what it has used: arithmetic without a clock (BUDGET).

A step is admitted while what was spent, and what the steps in flight are expected to spend, is below every
limit. It reserves its own estimate and gives that back when its real spend is known. Nothing that has begun
is stopped, so a tree may pass a limit, by at most `overshoot_bound`.
"""

from collections.abc import Iterable
from decimal import Context, Decimal
from enum import StrEnum
from typing import NamedTuple

import msgspec

from domain import events as e
from domain.events.side import SideCallReplied
from domain.failure import ErrorClass, RunError
from domain.ids import RunId
from domain.messages import Usage
from domain.pricing import Price, cost_of

BUDGET_EXCEEDED = "run_budget_exceeded"
_EXACT = Context(prec=500)
"""Sums must not depend on the order of what is added, so they are never rounded."""
UNSTATED_OUTPUT_TOKENS = 1024
"""What a step is expected to write whose agent sets no `max_output_tokens`."""


class Limit(StrEnum):
    """What can be used up. The values are names of settings in `agent_graph`, without `max_`."""

    DEPTH = "depth"
    RUNS = "total_runs"
    TOKENS = "total_tokens"
    COST = "total_cost"
    DURATION = "duration"

    @property
    def setting(self) -> str:
        return f"agent_graph.max_{self.value}"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """None: there is no such limit. The depth always has one; the root of a tree is at 0."""

    depth: int
    runs: int | None = None
    tokens: int | None = None
    cost: Decimal | None = None
    duration_s: float | None = None


def limits_of(
    *, depth: int, runs: int, tokens: int, cost: Decimal | None, duration_s: float | None
) -> Limits:
    """As an operator writes them: zero or less removes a limit, but a depth below zero is zero (BUDGET-1)."""
    return Limits(
        depth=max(0, depth),
        runs=runs if runs > 0 else None,
        tokens=tokens if tokens > 0 else None,
        cost=cost if cost is not None and cost > 0 else None,
        duration_s=duration_s if duration_s is not None and duration_s > 0 else None,
    )


class Charge(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens and money, spent or expected. A cost that nobody knows is not in it: tokens bound it then."""

    tokens: int = 0
    cost: Decimal = Decimal(0)

    def __add__(self, other: "Charge") -> "Charge":
        return Charge(tokens=self.tokens + other.tokens, cost=_EXACT.add(self.cost, other.cost))


def estimate_of(prompt_tokens: int, max_output_tokens: int | None, price: Price | None) -> Charge:
    """What a step is expected to spend. Without a price, nothing is known of its cost."""
    output_tokens = UNSTATED_OUTPUT_TOKENS if max_output_tokens is None else max_output_tokens
    usage = Usage(input_tokens=prompt_tokens, output_tokens=output_tokens)
    return Charge(tokens=usage.total, cost=cost_of(usage, price) or Decimal(0))


NOTHING = Charge()


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """What a tree has used: in the runs that it continues as well as in its own (BUDGET-7)."""

    charge: Charge = Charge()
    runs: int = 0
    """Child runs that were started."""
    executing_s: float = 0.0
    """For how long the runs before this one executed."""


class Refusal(NamedTuple):
    """What may not start, and because of which limit."""

    limit: Limit
    error: RunError


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """One tree's. `in_flight` has the estimates of steps that were admitted and are not settled yet.

    A run is at one step at a time, so its id names the step.
    """

    limits: Limits
    spent: Spent = Spent()
    in_flight: dict[RunId, Charge] = {}

    @property
    def expected(self) -> Charge:
        """What was spent, and what the steps in flight are expected to spend."""
        return sum(self.in_flight.values(), self.spent.charge)


def refusal_of_child(budget: Budget, depth: int) -> Refusal | None:
    """Why no child may start at this depth. Depth and number stop new children, nothing else (BUDGET-2)."""
    limits, spent = budget.limits, budget.spent
    if depth > limits.depth:
        return _refused(Limit.DEPTH, f"the child run would be at depth {depth}; {limits.depth} is allowed")
    if limits.runs is not None and spent.runs >= limits.runs:
        return _refused(Limit.RUNS, f"the tree of runs has started {spent.runs} of {limits.runs} child runs")
    return None


def refusal_of_work(budget: Budget, elapsed_s: float) -> Refusal | None:
    """Why no model turn and no tool call may start any more (BUDGET-2, BUDGET-4)."""
    return _of_tokens(budget) or refusal_of_node(budget, elapsed_s)


def refusal_of_node(budget: Budget, elapsed_s: float) -> Refusal | None:
    """Why no function node may start any more: it spends no tokens, so those do not stop it (BUDGET-5)."""
    return _of_cost(budget) or _of_duration(budget, elapsed_s)


def has_room(budget: Budget) -> bool:
    """Whether a step may be admitted now. If not, and nothing refuses it, it waits for one to be settled."""
    limits, expected = budget.limits, budget.expected
    tokens_left = limits.tokens is None or expected.tokens < limits.tokens
    return tokens_left and (limits.cost is None or expected.cost < limits.cost)


def reserve(budget: Budget, run_id: RunId, estimate: Charge) -> Budget:
    """A step of this run is admitted."""
    return _with(budget, in_flight={**budget.in_flight, run_id: estimate})


def settle(budget: Budget, run_id: RunId) -> Budget:
    """The run's step is over. What it has really spent was charged when that became known."""
    return _with(budget, in_flight={one: due for one, due in budget.in_flight.items() if one != run_id})


def charged(budget: Budget, charge: Charge) -> Budget:
    """Something was spent."""
    spent = budget.spent
    return _with(budget, spent=_with(spent, charge=spent.charge + charge))


def with_child(budget: Budget) -> Budget:
    """A child run was started."""
    spent = budget.spent
    return _with(budget, spent=_with(spent, runs=spent.runs + 1))


def charge_of(event: e.Event) -> Charge:
    """What an event says was spent. All charges are events of the run that spent them (BUDGET-8)."""
    match event:
        case e.ModelReplied(usage=usage, cost=cost) | SideCallReplied(usage=usage, cost=cost):
            return Charge(tokens=usage.total, cost=cost or Decimal(0))
        case e.UsageReported(amount=amount, counted=True):
            return Charge(cost=amount or Decimal(0))
        case _:
            return NOTHING


class Step(NamedTuple):
    """A step that was in flight: what it was expected to spend, and what it did."""

    estimate: Charge
    actual: Charge


def overshoot_bound(last: Step, others: Iterable[Step], reported: Charge = Charge()) -> Charge:  # noqa: B008 - immutable
    """By how much a tree can pass its limits at most.

        bound = actual(last) + sum of max(0, actual - estimate) over the others in flight + reported

    `last` is the step that was admitted last; `others` were in flight then. The sum of what was spent and
    estimated was below the limit at that moment, and nothing was admitted after it. Where estimates are not
    too low, that is less than one step. `reported`: what tools and nodes said they have spent after that
    moment.
    """
    too_low = [
        Charge(
            tokens=max(0, step.actual.tokens - step.estimate.tokens),
            cost=max(Decimal(0), step.actual.cost - step.estimate.cost),
        )
        for step in others
    ]
    return sum(too_low, last.actual + reported)


def _of_tokens(budget: Budget) -> Refusal | None:
    spent, limit = budget.spent.charge.tokens, budget.limits.tokens
    if limit is None or spent < limit:
        return None
    return _refused(Limit.TOKENS, f"the tree of runs has spent {spent} of {limit} tokens")


def _of_cost(budget: Budget) -> Refusal | None:
    spent, limit = budget.spent.charge.cost, budget.limits.cost
    if limit is None or spent < limit:
        return None
    return _refused(Limit.COST, f"the tree of runs has spent a cost of {spent:f}, and {limit:f} is allowed")


def _of_duration(budget: Budget, elapsed_s: float) -> Refusal | None:
    took_s, limit = budget.spent.executing_s + elapsed_s, budget.limits.duration_s
    if limit is None or took_s < limit:
        return None
    return _refused(
        Limit.DURATION, f"the tree of runs has executed for {took_s:.1f} s, and {limit:g} s are allowed"
    )


def _refused(limit: Limit, why: str) -> Refusal:
    error = RunError(
        message=f"{why}; {limit.setting} raises the limit",
        type=BUDGET_EXCEEDED,
        error_class=ErrorClass.QUOTA_EXCEEDED,
    )
    return Refusal(limit, error)


_with = msgspec.structs.replace
