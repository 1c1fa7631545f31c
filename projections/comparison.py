"""Two runs side by side: what they came to, by which calls, and at what cost."""

import difflib
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal

import msgspec

from domain.events import ModelReplied, RunCompleted
from domain.ledger import canonical_arguments
from domain.messages import Usage
from projections.base import Fact
from projections.run_record import RunRecord, record_of
from projections.tool_calls import ToolCallRecord, ToolCallState, tool_calls_of
from projections.values import added, plain, storable

DIFFED_LINES = 2000
"""Of each answer; a longer one is compared as a whole and not line by line."""


class Side(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs."""

    run: RunRecord
    answer: str | None
    steps: int
    """Model calls that were answered."""
    duration_ms: int | None
    """From its beginning to its end."""


class CallSide(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call in one of the two runs."""

    call_id: str
    step: int
    state: ToolCallState
    output: str | None
    duration_ms: int | None


class CallPair(msgspec.Struct, frozen=True, kw_only=True):
    """The same call in both runs, or one that only one of them made."""

    tool: str
    arguments: str
    a: CallSide | None = None
    b: CallSide | None = None
    same: bool
    """Whether both made it, and it came to the same."""


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    a: Side
    b: Side
    same_outcome: bool
    """Whether both ended in the same way."""
    same_answer: bool
    answer_diff: tuple[str, ...] | None
    """From a's answer to b's, as a unified diff; null where one of them is too long for that."""
    tool_calls: tuple[CallPair, ...]
    usage_difference: Usage
    """What b used more than a."""
    cost_difference: str | None
    """What b cost more than a; null where that is not known in one currency."""


def compare(a: Sequence[Fact], b: Sequence[Fact]) -> Comparison:
    """Compare two runs by their whole streams. Neither may be empty."""
    first, second = _side(a), _side(b)
    return Comparison(
        a=first,
        b=second,
        same_outcome=_outcome(first.run) == _outcome(second.run),
        same_answer=first.answer == second.answer,
        answer_diff=_diff(first.answer or "", second.answer or ""),
        tool_calls=_pairs(tool_calls_of(a), tool_calls_of(b)),
        usage_difference=_less(second.run.usage, first.run.usage),
        cost_difference=_more(first.run, second.run),
    )


def _side(facts: Sequence[Fact]) -> Side:
    run = record_of(facts)
    if run is None:
        raise ValueError("a comparison needs the streams of two runs")
    answers = [fact.event.answer for fact in facts if isinstance(fact.event, RunCompleted)]
    return Side(
        run=run,
        answer=storable(answers[-1]) if answers else None,
        steps=sum(isinstance(fact.event, ModelReplied) for fact in facts),
        duration_ms=(
            (run.ended_at - run.started_at) // timedelta(milliseconds=1)
            if run.started_at and run.ended_at
            else None
        ),
    )


def _outcome(run: RunRecord) -> tuple[str, str | None]:
    return run.status, run.error_type


def _diff(a: str, b: str) -> tuple[str, ...] | None:
    before, after = a.splitlines(), b.splitlines()
    if max(len(before), len(after)) > DIFFED_LINES:
        return None
    return tuple(difflib.unified_diff(before, after, "a", "b", lineterm=""))


def _pairs(a: Sequence[ToolCallRecord], b: Sequence[ToolCallRecord]) -> tuple[CallPair, ...]:
    """Equal calls beside each other, the others where they were made."""
    matcher = difflib.SequenceMatcher(a=[_name(c) for c in a], b=[_name(c) for c in b], autojunk=False)
    pairs: list[CallPair] = []
    for kind, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        if kind == "equal":
            pairs += map(_pair, a[a_from:a_to], b[b_from:b_to])
        else:
            pairs += [_pair(call, None) for call in a[a_from:a_to]]
            pairs += [_pair(None, call) for call in b[b_from:b_to]]
    return tuple(pairs)


def _name(call: ToolCallRecord) -> tuple[str, str]:
    return call.tool, canonical_arguments(call.arguments)


def _pair(a: ToolCallRecord | None, b: ToolCallRecord | None) -> CallPair:
    known = a or b
    if known is None:
        raise ValueError("a pair needs a call")
    same = a is not None and b is not None and (a.state, a.output) == (b.state, b.output)
    return CallPair(tool=known.tool, arguments=known.arguments, a=_call(a), b=_call(b), same=same)


def _call(call: ToolCallRecord | None) -> CallSide | None:
    if call is None:
        return None
    return CallSide(
        call_id=call.call_id,
        step=call.step,
        state=call.state,
        output=call.output,
        duration_ms=call.duration_ms,
    )


def _less(a: Usage, b: Usage) -> Usage:
    return Usage(**{name: getattr(a, name) - getattr(b, name) for name in Usage.__struct_fields__})


def _more(a: RunRecord, b: RunRecord) -> str | None:
    """Who has paid nothing yet has no currency, and fits any."""
    one_currency = len({run.currency for run in (a, b) if run.currency is not None}) <= 1
    if a.cost is None or b.cost is None or not one_currency:
        return None
    return plain(added(Decimal(b.cost), -Decimal(a.cost)))
