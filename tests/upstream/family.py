"""What differs between the wires that the upstream speaks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Call:
    """A tool call that the server asks for."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Spent:
    """Tokens, as the wire reports them."""

    input: int = 7
    output: int = 5
    cached: int = 3
    reasoning: int = 2


@dataclass(frozen=True)
class Answer:
    """A whole answer."""

    text: str = ""
    calls: Sequence[Call] = ()
    reason: str = "stop"
    """stop, length, tool_calls or content_filter: each family has its own words."""
    spent: Spent = Spent()
    reasoned: bool = False


class Family(Protocol):
    """One wire. Everything returns bytes ready to be sent."""

    name: str

    def wants_stream(self, path: str, body: Mapping[str, Any]) -> bool: ...

    def model(self, path: str, body: Mapping[str, Any]) -> str: ...

    def whole(self, model: str, answer: Answer) -> bytes: ...

    def preamble(self, model: str) -> list[bytes]:
        """Events that carry no content."""
        ...

    def reasoning(self, model: str) -> list[bytes]:
        """The model thinks, where the reader may or may not see it."""
        ...

    def text(self, model: str, text: str, before: str) -> bytes:
        """Some text; `before` is what was sent of it already."""
        ...

    def calls(self, model: str, calls: Sequence[Call]) -> list[bytes]: ...

    def finish(self, model: str, answer: Answer) -> list[bytes]:
        """The finish reason first, then what belongs to it, up to the terminator."""
        ...

    def terminator(self) -> list[bytes]: ...

    def error_event(self, status: int, code: str, message: str) -> bytes: ...

    def error_body(self, status: int, code: str, message: str) -> bytes: ...
