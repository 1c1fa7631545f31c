"""When two tool calls are the same call, the key that the outside knows one by, and what each came to."""

import hashlib
import json
from collections.abc import Iterable
from typing import Any

import msgspec

from domain import events as e
from domain import strict_json
from domain.events.side import ContextCompacted, Summary
from domain.ids import RunId

EqualCalls = tuple[str, str]
"""A tool and its arguments in canonical form: the name of all calls that are the same call."""

_DEEPEST = 64
_LONGEST_PLAIN = 20
_KEY_DIGITS = 40


def canonical_arguments(text: str) -> str:
    """The same text for the same arguments: keys sorted, no white space, every number in one spelling.

    What is not a JSON object in good order is the same as itself only, to the letter. No text at all is {}.
    """
    if not text.strip():
        return "{}"
    try:
        value = strict_json.parse(text, number=_Number)
        return _written(value, 0) if isinstance(value, dict) else text
    except ValueError:
        return text


def call_key(root_of_chain: RunId, tool: str, canonical_arguments: str, occurrence: int) -> str:
    """A tool call's idempotency key for the outside world (TOOL-1).

    It is the same when the call is repeated after a crash or on another link: `root_of_chain` is the first of
    the runs that continue one another, and `occurrence` counts the bodies that were begun for equal calls.
    """
    # As JSON, so that no two lists of parts make the same bytes, and every text has some.
    parts = json.dumps([str(root_of_chain), tool, canonical_arguments, occurrence])
    return f"tk_{hashlib.sha256(parts.encode()).hexdigest()[:_KEY_DIGITS]}"


class _Number(str):
    """The digits of a number. A float would take two long numbers for one."""

    __slots__ = ()

    def spelt(self) -> str:
        mantissa, _, exponent = self.lower().partition("e")
        whole, _, fraction = mantissa.lstrip("-").partition(".")
        digits = (whole + fraction).lstrip("0")
        kept = digits.rstrip("0")
        if not kept:
            return "0"
        shift = int(exponent or 0) - len(fraction) + len(digits) - len(kept)
        return ("-" if self.startswith("-") else "") + _placed(kept, shift)


def _placed(digits: str, shift: int) -> str:
    if 0 <= shift <= _LONGEST_PLAIN:
        return digits + "0" * shift
    if -_LONGEST_PLAIN <= shift < 0:
        padded = digits.rjust(1 - shift, "0")
        return f"{padded[:shift]}.{padded[shift:]}"
    return f"{digits}e{shift}"


def _written(value: Any, depth: int) -> str:
    # A bound of our own: Python's depends on how deep the caller stands.
    if depth > _DEEPEST:
        raise ValueError("nested too deeply to compare")
    if isinstance(value, dict):
        entries = (f"{_text(key)}:{_written(value[key], depth + 1)}" for key in sorted(value))
        return f"{{{','.join(entries)}}}"
    if isinstance(value, list):
        return f"[{','.join(_written(item, depth + 1) for item in value)}]"
    return value.spelt() if isinstance(value, _Number) else _text(value)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


class RecordedResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a call came to when its body ran. `run_id` is the run that ran it."""

    run_id: RunId
    call_id: str
    output: str
    failed: bool = False


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """A body that was begun. Without a result nobody knows what came of it, or it came to nothing."""

    call_key: str
    result: RecordedResult | None = None
    child: RunId | None = None
    """The run that a call to an agent was, when this was begun last."""


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """The bodies that were begun for a turn's tool calls, for the links and runs after those that began them.

    Calls are equal when tool and canonical arguments are. A later link's first such call stands for the first
    invocation, its second for the second, whatever the tool's effect: it is answered with the result; without
    one the body runs again, under the same key. What a link ran itself never answers its own calls.

    Calls beyond those are new. But where an earlier link of the same run made such a call, nobody can tell
    a new wish from a repeated one: they run only if that does no harm, and otherwise the last result answers
    them too (CHAIN-6). A run that continues another begins its turn from the start, and has no such doubt.
    """

    invocations: dict[EqualCalls, tuple[Invocation, ...]] = {}
    """Oldest first, those of earlier runs and links before those of the present one."""
    earlier: dict[EqualCalls, int] = {}
    """How many of these were begun before the present link."""
    made: dict[EqualCalls, int] = {}
    """How many such calls the present link has made."""
    asked_before: frozenset[EqualCalls] = frozenset()
    """What earlier links of the present run asked for."""
    running: dict[str, tuple[EqualCalls, int]] = {}
    """The present link's invocations without a result yet, by call id."""
    summaries: tuple[Summary, ...] = ()
    """What was summarised of the conversation, which nobody has to be asked for again (CHAIN-13)."""

    def answer(self, tool: str, arguments: str, *, harmless: bool = False) -> RecordedResult | None:
        """The result that the present link's next such call is answered with; None means that it runs.

        `harmless`: the tool only reads, or is safe to repeat. A poll must not see its first answer for ever.
        """
        calls = (tool, canonical_arguments(arguments))
        if invocation := self._next(calls):
            return invocation.result
        if harmless or calls not in self.asked_before:
            return None
        results = [one.result for one in self.invocations.get(calls, ())[: self.earlier.get(calls, 0)]]
        return next((result for result in reversed(results) if result is not None), None)

    def call_key(self, root_of_chain: RunId, tool: str, arguments: str) -> str:
        """The key of the present link's next such call, if it runs: that of the invocation it repeats."""
        calls = (tool, canonical_arguments(arguments))
        if invocation := self._next(calls):
            return invocation.call_key
        return call_key(root_of_chain, *calls, len(self.invocations.get(calls, ())))

    def after_answer(self, tool: str, arguments: str) -> "Ledger":
        """A call was answered from here."""
        return _with(self, made=self._one_more((tool, canonical_arguments(arguments))))

    def after_invocation(self, call_id: str, tool: str, arguments: str, key: str) -> "Ledger":
        """A body is begun for a call."""
        calls = (tool, canonical_arguments(arguments))
        begun = list(self.invocations.get(calls, ()))
        place = self.made.get(calls, 0) if self._next(calls) else len(begun)
        begun[place : place + 1] = [Invocation(call_key=key, child=self._child_at(calls, place))]
        return _with(
            self,
            invocations={**self.invocations, calls: tuple(begun)},
            made=self._one_more(calls),
            running={**self.running, call_id: (calls, place)},
        )

    def after_child(self, call_id: str, child: RunId) -> "Ledger":
        """The body that was begun for a call is a run."""
        if call_id not in self.running:
            return self
        calls, place = self.running[call_id]
        begun = list(self.invocations[calls])
        begun[place] = _with(begun[place], child=child)
        return _with(self, invocations={**self.invocations, calls: tuple(begun)})

    def interrupted_child(self, tool: str, arguments: str) -> RunId | None:
        """The run that the present link's next such call goes on from, if it runs: it was begun before."""
        invocation = self._next((tool, canonical_arguments(arguments)))
        return invocation.child if invocation else None

    def after_result(self, result: RecordedResult) -> "Ledger":
        """A body has come to this. The result of a call that was never begun is nobody's answer."""
        if result.call_id not in self.running:
            return self
        still_out = dict(self.running)
        calls, place = still_out.pop(result.call_id)
        begun = list(self.invocations[calls])
        begun[place] = _with(begun[place], result=result)
        return _with(self, invocations={**self.invocations, calls: tuple(begun)}, running=still_out)

    def for_next_link(self) -> "Ledger":
        """Another link goes on with the turn (CHAIN-6)."""
        return _with(self.for_next_run(), asked_before=self.asked_before | self.made.keys())

    def for_next_run(self) -> "Ledger":
        """Another run takes the turn up again, from its start (CONT-2)."""
        earlier = {calls: len(begun) for calls, begun in self.invocations.items()}
        return Ledger(invocations=self.invocations, earlier=earlier, summaries=self.summaries)

    def _next(self, calls: EqualCalls) -> Invocation | None:
        """The earlier invocation that the present link's next such call stands for."""
        made = self.made.get(calls, 0)
        return self.invocations[calls][made] if made < self.earlier.get(calls, 0) else None

    def _child_at(self, calls: EqualCalls, place: int) -> RunId | None:
        begun = self.invocations.get(calls, ())
        return begun[place].child if place < len(begun) else None

    def _one_more(self, calls: EqualCalls) -> dict[EqualCalls, int]:
        return {**self.made, calls: self.made.get(calls, 0) + 1}


# A call that failed before its body began came to nothing, and one that was cancelled to nothing known.
_NO_RESULT = frozenset(
    {
        e.ToolFailure.UNKNOWN_TOOL,
        e.ToolFailure.INVALID_ARGUMENTS,
        e.ToolFailure.CANCELLED,
        e.ToolFailure.NOT_RUN,
        e.ToolFailure.DENIED,
        e.ToolFailure.REFUSED,
    }
)


def inherited(runs: Iterable[tuple[RunId, Iterable[e.RunEvent]]]) -> Ledger:
    """What a run begins with that continues these, the oldest first (CONT-2).

    After a run that was interrupted its turn is taken up again where that run began; after one that waited
    for a person it goes on from where it stopped, and its calls so far stay what they are (TOOL-2).
    """
    ledger = Ledger()
    for run_id, events in runs:
        made_before, waited = ledger.made, False
        for event in events:
            ledger = evolve(ledger, run_id, event)
            waited = waited or isinstance(event, e.RunAwaitingApproval)
        if not waited:
            ledger = _with(ledger.for_next_run(), made=made_before)
    return ledger


def evolve(ledger: Ledger, run_id: RunId, event: e.Event) -> Ledger:  # noqa: C901 - one flat dispatch
    """Fold one fact of a run in: its own while it lives, or those of the run that it continues (CONT-2)."""
    match event:
        case e.ToolInvoking(call_id=call_id, tool=tool, arguments=arguments, call_key=key):
            return ledger.after_invocation(call_id, tool, arguments, key)
        case e.ChildRunStarted(cause=call_id, run_id=child):
            return ledger.after_child(call_id, child)
        case e.ToolReturned(call_id=call_id, output=output):
            return ledger.after_result(RecordedResult(run_id=run_id, call_id=call_id, output=output))
        case e.ToolFailed(call_id=call_id, output=output) as failure if failure.failure not in _NO_RESULT:
            return ledger.after_result(
                RecordedResult(run_id=run_id, call_id=call_id, output=output, failed=True)
            )
        case e.ToolResolved(call_id=call_id, output=output, failed=failed):
            return ledger.after_result(
                RecordedResult(run_id=run_id, call_id=call_id, output=output, failed=failed)
            )
        case e.ToolAnswered(tool=tool, arguments=arguments):
            return ledger.after_answer(tool, arguments)
        case e.ModelFallbackUsed():
            return ledger.for_next_link()
        case ContextCompacted(summary=summary):
            return _with(ledger, summaries=(*ledger.summaries, summary))
        case _:
            return ledger


_with = msgspec.structs.replace
