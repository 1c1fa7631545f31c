"""Ends of runs that wait for a person. They are final for the run: the person's word opens another one."""

from enum import StrEnum
from typing import Any

import msgspec

from domain.event import Event


class AwaitedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call that is not made before somebody has said that it may be."""

    call_id: str
    tool: str
    arguments: str
    effect: str


class CallDecision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What somebody said of one call. The model reads the reason of a denial."""

    approved: bool
    reason: str = ""


class InputRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A question to a person. `schema`: what the answer must look like, where that is not free text."""

    id: str
    node: str
    prompt: str = ""
    schema: dict[str, Any] | None = None


class WaitOver(StrEnum):
    """Why nobody's word will come any more."""

    EXPIRED = "expired"
    WITHDRAWN = "withdrawn"


class RunAwaitingApproval(Event, frozen=True, kw_only=True, tag="run.awaiting-approval.v1"):
    """The run ended where somebody must say whether these calls may be made (TOOL-2).

    They have no result yet, and neither have other calls of the same reply that come after the first of them.
    """

    calls: tuple[AwaitedCall, ...]


class RunAwaitingInput(Event, frozen=True, kw_only=True, tag="run.awaiting-input.v1"):
    """The run ended where it needs a person's answers to go on (WF-3)."""

    requests: tuple[InputRequest, ...]


class RunWaitEnded(Event, frozen=True, kw_only=True, tag="run.wait-ended.v1"):
    """Nobody will answer what the run waits for: no other run goes on from it. It follows the run's end."""

    cause: WaitOver
    reason: str = ""


RunWaits = RunAwaitingApproval | RunAwaitingInput
