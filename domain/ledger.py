"""When two tool calls are the same call, the key that the outside knows one by, and what each came to."""

import hashlib
import json
from typing import Any

import msgspec

from domain import events as e
from domain import strict_json
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
    the runs that continue one another, and `occurrence` counts the turn's equal calls before this one.
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


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """The results of a turn's tool calls, for the links after the one that made them (CHAIN-6).

    Calls are equal when tool and canonical arguments are. To each later link every recorded result answers
    one equal call, whatever the tool's effect: its first such call gets the first result, its second the
    second. Calls beyond those run only if running them again does no harm; otherwise the last result answers
    them too, for nobody can tell a new wish from a repeated one. What a link ran itself never answers its own
    calls. A body is never run for a call that a result is left for.
    """

    earlier: dict[EqualCalls, tuple[RecordedResult, ...]] = {}
    """What earlier links ran, oldest first."""
    answered: dict[EqualCalls, int] = {}
    """How many of these results the present link has had."""
    own: dict[EqualCalls, tuple[RecordedResult, ...]] = {}
    """What the present link ran."""
    invoked: dict[str, EqualCalls] = {}
    """Bodies that have begun, by call id; with a result they become somebody's answer."""

    def answer(self, tool: str, arguments: str, *, harmless: bool = False) -> RecordedResult | None:
        """The result that the present link's next such call is answered with; None means that it runs.

        `harmless`: the tool only reads, or is safe to repeat. A poll must not see its first answer for ever.
        """
        calls = (tool, canonical_arguments(arguments))
        results = self.earlier.get(calls, ())
        had = self.answered.get(calls, 0)
        if had < len(results):
            return results[had]
        return results[-1] if results and not harmless else None

    def after_answer(self, tool: str, arguments: str) -> "Ledger":
        """A call was answered from here."""
        calls = (tool, canonical_arguments(arguments))
        return _with(self, answered={**self.answered, calls: self.answered.get(calls, 0) + 1})

    def after_result(self, tool: str, arguments: str, result: RecordedResult) -> "Ledger":
        """A body ran for a call, and this is its result."""
        calls = (tool, canonical_arguments(arguments))
        return _with(self, own={**self.own, calls: (*self.own.get(calls, ()), result)})

    def for_next_link(self) -> "Ledger":
        """Another link goes on with the turn, or another run with the conversation (CONT-2)."""
        merged = dict(self.earlier)
        for calls, results in self.own.items():
            merged[calls] = (*merged.get(calls, ()), *results)
        return Ledger(earlier=merged)


# A call that failed before its body began came to nothing, and one that was cancelled to nothing known.
_NO_RESULT = frozenset({e.ToolFailure.UNKNOWN_TOOL, e.ToolFailure.INVALID_ARGUMENTS, e.ToolFailure.CANCELLED})


def evolve(ledger: Ledger, run_id: RunId, event: e.Event) -> Ledger:
    """Fold one fact of a run in: its own while it lives, or those of the run that it continues (CONT-2)."""
    match event:
        case e.ToolInvoking(call_id=call_id, tool=tool, arguments=arguments):
            calls = (tool, canonical_arguments(arguments))
            return _with(ledger, invoked={**ledger.invoked, call_id: calls})
        case e.ToolReturned(call_id=call_id, output=output):
            return _ended(ledger, RecordedResult(run_id=run_id, call_id=call_id, output=output))
        case e.ToolFailed(call_id=call_id, output=output) as failure if failure.failure not in _NO_RESULT:
            result = RecordedResult(run_id=run_id, call_id=call_id, output=output, failed=True)
            return _ended(ledger, result)
        case e.ToolAnswered(tool=tool, arguments=arguments):
            return ledger.after_answer(tool, arguments)
        case e.ModelFallbackUsed():
            return ledger.for_next_link()
        case _:
            return ledger


def _ended(ledger: Ledger, result: RecordedResult) -> Ledger:
    if result.call_id not in ledger.invoked:
        return ledger
    still_out = dict(ledger.invoked)
    tool, arguments = still_out.pop(result.call_id)
    return _with(ledger.after_result(tool, arguments, result), invoked=still_out)


_with = msgspec.structs.replace
