"""A message's content as OpenAI's API has it: a text, or parts of which only texts are taken."""

from typing import Any

import msgspec

from app.http.openai.refusing import wrong

_TEXTS = ("text", "input_text", "output_text")


class ContentPart(msgspec.Struct, frozen=True, kw_only=True):
    """A text. Other fields of it, such as annotations, are read over."""

    type: str
    text: str | None = None
    refusal: str | None = None


Content = str | tuple[ContentPart, ...]


def text_of(content: Content, where: str) -> str:
    """The content as one text. Raise BadBody naming a part that is none."""
    if isinstance(content, str):
        return content
    return "\n".join(_text(part, f"{where}[{number}]") for number, part in enumerate(content))


def _text(part: ContentPart, where: str) -> str:
    text = part.refusal if part.type == "refusal" else part.text
    if part.type not in (*_TEXTS, "refusal"):
        raise wrong(f"{where}.type", f"parts of type {part.type!r} are not supported; send text")
    if text is None:
        raise wrong(where, "has no text")
    return text


def is_given(value: Any) -> bool:
    """Whether a field that may be null or empty asks for anything."""
    return value is not None and value != () and value != {}
