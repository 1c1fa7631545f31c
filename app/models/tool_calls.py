"""Tool calls put together from the fragments of a stream, as many servers get it slightly wrong."""

from collections.abc import Iterable
from typing import Any
from uuid import uuid4

import msgspec

from app.models.openai_wire import Call, Function
from domain.messages import ToolCall


def new_call_id() -> str:
    """For a call that came without an id, or with one that another call of the same reply has."""
    return f"call_{uuid4().hex[:24]}"


class _Draft:
    """A call in the making."""

    def __init__(self, index: int | None, call_id: str | None) -> None:
        self.index = index
        self.id = call_id or ""
        self.name = ""
        self.arguments: list[str] = []

    def add(self, function: Function | None) -> None:
        if function is None:
            return
        # Servers that repeat the name repeat it whole: it never comes in pieces.
        self.name = self.name or function.name or ""
        if function.arguments:
            self.arguments.append(_json_text(function.arguments))


class ToolCallAssembly:
    """Collects the calls of one reply, in the order in which they began."""

    def __init__(self) -> None:
        self._drafts: list[_Draft] = []

    def __bool__(self) -> bool:
        return bool(self._drafts)

    def add(self, call: Call) -> None:
        draft = self._draft_of(call) or self._begin(call)
        draft.id = draft.id or call.id or ""
        draft.add(call.function)

    def add_function(self, function: Function) -> None:
        """The older form: at most one call, without an id."""
        self.add(Call(index=0, function=function))

    def finished(self) -> tuple[ToolCall, ...]:
        """The calls, each with an id of its own. An empty name is the server's fault and stays empty."""
        return unique_ids(
            ToolCall(id=draft.id, name=draft.name, arguments="".join(draft.arguments) or "{}")
            for draft in self._drafts
        )

    def _begin(self, call: Call) -> _Draft:
        draft = _Draft(call.index, call.id)
        self._drafts.append(draft)
        return draft

    def _draft_of(self, call: Call) -> _Draft | None:
        """The draft that a fragment goes on with; None begins another call.

        The index decides, except that a new id with a name is a new call: some servers number all calls 0.
        Without an index the id decides, and without an id a name begins a call.
        """
        named = bool(call.function and call.function.name)
        if call.index is None:
            return self._by_id(call.id) if call.id else self._last(unless=named)
        draft = next((d for d in reversed(self._drafts) if d.index == call.index), None)
        if draft is not None and named and call.id and draft.id and call.id != draft.id:
            return self._by_id(call.id)
        return draft

    def _by_id(self, call_id: str) -> _Draft | None:
        return next((d for d in self._drafts if d.id == call_id), None)

    def _last(self, *, unless: bool) -> _Draft | None:
        return self._drafts[-1] if self._drafts and not unless else None


def unique_ids(calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
    """The calls of one reply; one without an id, or with the id of another, gets a new one."""
    taken: set[str] = set()
    unique: list[ToolCall] = []
    for call in calls:
        keeps = bool(call.id) and call.id not in taken
        unique.append(call if keeps else msgspec.structs.replace(call, id=new_call_id()))
        taken.add(call.id)
    return tuple(unique)


def _json_text(arguments: str | dict[str, Any]) -> str:
    return arguments if isinstance(arguments, str) else msgspec.json.encode(arguments).decode()
