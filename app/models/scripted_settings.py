"""What a scripted model says, call by call, as an operator or a test writes it down."""

import math
import re
from typing import Annotated, Any

import msgspec

from app.settings.durations import Seconds
from app.settings.sections import Count, Section
from domain.messages import Usage

_SPOKEN = ("text", "chunks")
_AFTER_TEXT = ("tool_call", "tool_calls", "error", "content_filter", "cut_after", "stall_after")
_ALONE = (
    "status", "refused", "reset", "silent", "unreadable", "empty", "length", "echo", "last_tool_result",
)  # fmt: skip
KINDS = (*_SPOKEN, *_ALONE, *_AFTER_TEXT)
_WITHOUT_TEXT = frozenset({"status", "refused", "reset", "silent", "unreadable", "empty"})

Tokens = Annotated[int, msgspec.Meta(ge=0)]


def in_words(text: str) -> tuple[str, ...]:
    """The text in pieces of one word each, white space kept."""
    return tuple(re.findall(r"\s*\S+\s*$|\s*\S+|\s+", text))


def _check_template(name: str, value: bool | str | None, placeholder: str) -> None:
    if isinstance(value, str) and placeholder not in value:
        raise ValueError(f"{name} is true, or a text with {placeholder} in it")


class ScriptedCall(Section, frozen=True, kw_only=True):
    """A tool call. Arguments given as text are sent as they are, broken JSON included."""

    name: Annotated[str, msgspec.Meta(min_length=1)]
    arguments: dict[str, Any] | str = msgspec.field(default_factory=dict)
    id: str | None = None
    """None: an id that no other call has."""


class ScriptedStatus(Section, frozen=True, kw_only=True):
    """An HTTP status that is not a success."""

    status: Annotated[int, msgspec.Meta(ge=300, le=599)]
    retry_after: float | str | None = None
    """Seconds, or a date as HTTP writes it."""
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    code: str | None = None
    message: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.retry_after, float) and not 0 <= self.retry_after < math.inf:
            raise ValueError("retry_after is a number of seconds from 0")


class ScriptedError(Section, frozen=True, kw_only=True):
    """An error that is reported inside of a success."""

    code: str | None = None
    message: str = ""


class ScriptedUsage(Section, frozen=True, kw_only=True):
    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    cached_input_tokens: Tokens = 0
    reasoning_tokens: Tokens = 0

    def usage(self) -> Usage:
        return Usage(**msgspec.structs.asdict(self))


class Behaviour(Section, frozen=True, kw_only=True, omit_defaults=True):
    """What one call does: exactly one of its kinds, with the options that go with it.

    `tool_call`, `tool_calls`, `error`, `content_filter`, `cut_after` and `stall_after` may have a `text` or
    `chunks` that they follow.
    """

    text: str | None = None
    """An answer, streamed word by word."""
    chunks: tuple[str, ...] | None = None
    """An answer, streamed in these pieces."""
    tool_call: ScriptedCall | None = None
    tool_calls: tuple[ScriptedCall, ...] | None = None
    status: int | ScriptedStatus | None = None
    error: ScriptedError | None = None
    """An error that the stream, or the body, reports after a 200."""
    refused: bool = False
    """No connection."""
    reset: bool = False
    """The connection breaks before any content."""
    silent: bool = False
    """Nothing comes, for as long as the caller waits."""
    unreadable: bool = False
    """A page in place of an answer."""
    empty: bool = False
    """A success with neither text nor a tool call."""
    length: str | None = None
    """An answer that the output limit ended."""
    content_filter: bool = False
    echo: bool | str = False
    """The last user message, alone or in place of {message}."""
    last_tool_result: bool | str = False
    """The last tool result, alone or in place of {result}."""
    cut_after: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """The connection breaks after this many chunks."""
    stall_after: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Nothing more comes after this many chunks."""

    delay: Seconds = 0.0
    """Before each chunk but the first."""
    first_delay: Seconds = 0.0
    """Before the first chunk."""
    usage: ScriptedUsage | None = None
    """None: words are counted."""
    repeat: Count = 1
    """How many calls of the script do this."""

    def __post_init__(self) -> None:
        kind = self.kind
        if (self.delay or self.first_delay) and kind in _WITHOUT_TEXT:
            raise ValueError(f"delay and first_delay go with text, not with {kind}")
        if self.tool_calls == ():
            raise ValueError("tool_calls is empty")
        if self.chunks is not None and not all(self.chunks):
            raise ValueError("an empty chunk is none")
        if (self.cut_after or self.stall_after) and not self.pieces:
            raise ValueError(f"{kind} needs the text or chunks that it comes after")
        if isinstance(self.status, int) and not 300 <= self.status <= 599:
            raise ValueError("status must be from 300 to 599")
        _check_template("echo", self.echo, "{message}")
        _check_template("last_tool_result", self.last_tool_result, "{result}")

    @property
    def kind(self) -> str:
        """The one kind that this is. Raise ValueError for none or several."""
        given = [
            kind for kind in KINDS if getattr(self, kind) is not None and getattr(self, kind) is not False
        ]
        acts = [kind for kind in given if kind not in _SPOKEN]
        speech = [kind for kind in given if kind in _SPOKEN]
        allowed = len(speech) <= 1 and len(acts) == 1 and acts[0] in _AFTER_TEXT
        if not allowed and len(given) != 1:
            raise ValueError(
                f"a behaviour is one of {', '.join(KINDS)}; this is {' and '.join(given) or 'none'}"
            )
        return (acts or speech)[0]

    @property
    def pieces(self) -> tuple[str, ...]:
        """The given text, as it is streamed."""
        return self.chunks if self.chunks is not None else in_words(self.text or self.length or "")


class ScriptedModel(Section, frozen=True, kw_only=True):
    """Behaviours consumed one per call, whoever calls; after the last one `default` holds.

    A list as `default` is entered at how many replies the current turn has already; its last entry repeats.
    """

    script: tuple[Behaviour, ...] = ()
    default: Behaviour | tuple[Behaviour, ...] = Behaviour(echo=True)
