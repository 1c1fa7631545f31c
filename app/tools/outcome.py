"""What comes of a tool call, as the model reads it."""

import msgspec

from domain.events import ToolFailure

DEFAULT_OUTPUT_LIMIT = 64 * 1024


class ToolOutput(msgspec.Struct, frozen=True, kw_only=True):
    """The body ended well. `truncated` says that the output limit cut `text`."""

    text: str
    truncated: bool = False
    duration_ms: int = 0


class ToolError(msgspec.Struct, frozen=True, kw_only=True):
    """The call failed, which is a result too. `text` is a sentence that the model can act on."""

    failure: ToolFailure
    text: str
    duration_ms: int = 0


class UnusableResult(Exception):
    """A tool returned what no model can read. Its effect has happened all the same."""


def text_of(result: object) -> str:
    """A result as text: a string as it is, everything else as JSON. Raise UnusableResult."""
    if isinstance(result, str):
        return storable(result)
    try:
        return storable(msgspec.json.encode(result).decode())
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        kind = type(result).__name__
        raise UnusableResult(f"it returned a {kind}, which cannot be written as JSON: {error}") from error


def storable(text: str) -> str:
    """The text with what no database and no wire can carry replaced: NUL, and halves of surrogate pairs."""
    return text.replace("\0", "\ufffd").encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def limited(text: str, limit: int) -> tuple[str, bool]:
    """The text and whether it was cut. A cut text ends with a mark that says so."""
    if len(text) * 4 <= limit:
        return text, False
    data = text.encode()
    if len(data) <= limit:
        return text, False
    kept = data[:limit].decode(errors="ignore")
    return f"{kept}\n[The output was cut here: {limit} of {len(data)} bytes are shown.]", True
