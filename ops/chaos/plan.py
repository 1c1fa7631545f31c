"""What a submission is to bring about. It travels as the user's message, and the wall acts on it."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

_MARK = "PLAN "


class PlannedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that the model asks for. `order` tells it from every other call of the trial."""

    tool: str
    order: str
    for_ms: int = 0
    """How long the body takes."""
    fails: bool = False

    @property
    def arguments(self) -> str:
        """The same text each time, so that a repeated call is an equal one."""
        given = {"order": self.order, "for_ms": self.for_ms, "fails": self.fails}
        return msgspec.json.encode(given).decode()


class Trouble(msgspec.Struct, frozen=True, kw_only=True):
    """What the first call of a step meets, by the name of one of the upstream's models."""

    step: int
    kind: str


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """A turn: each of `steps` is a reply that asks for tools; then comes an answer of so many words."""

    number: int
    steps: tuple[tuple[PlannedCall, ...], ...] = ()
    words: int = 5
    pace_ms: int = 20
    """Between two pieces of a stream."""
    troubles: tuple[Trouble, ...] = ()

    @property
    def message(self) -> str:
        return _MARK + msgspec.json.encode(self).decode()

    def trouble_at(self, step: int) -> str | None:
        return next((trouble.kind for trouble in self.troubles if trouble.step == step), None)


def plan_in(text: str) -> Plan | None:
    """The plan that a message carries, if it carries one; the last one, where a wire has joined messages."""
    _, mark, plan = text.rpartition(_MARK)
    return msgspec.json.decode(plan, type=Plan) if mark else None


def turn_of(messages: Sequence[Mapping[str, Any]]) -> tuple[Plan, int]:
    """The plan of a conversation's last turn, and how many replies the turn has already.

    Messages as Chat Completions or Anthropic's Messages have them. Raise ValueError where there is no plan.
    """
    replies = 0
    for message in reversed(messages):
        if message["role"] == "assistant":
            replies += 1
        elif message["role"] == "user" and (plan := plan_in(_text_of(message["content"]))):
            return plan, replies
    raise ValueError("the conversation has no plan")


def _text_of(content: str | Sequence[Mapping[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content if part["type"] == "text")
