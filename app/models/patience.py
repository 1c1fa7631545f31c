"""How long one model call may take, phase by phase (CLASS-2)."""

import asyncio
import math

import msgspec

from app.models.port import ModelCallError
from domain.failure import CallFailure, FailureKind

STOPPING = CallFailure(kind=FailureKind.INTERNAL, message="the provider was closed on this side")


class TimeLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The time limits of every call to a provider, in seconds."""

    connect_s: float = 10.0
    idle_s: float = 25.0
    """Silence between chunks, once the model has begun."""
    tail_s: float = 2.0
    """After the finish reason, when only usage and a terminator may still come."""
    call_s: float = 600.0
    first_content_s: float | None = None
    """Replaces the limit that a request brings, where it brings one."""


class Patience:
    """The clock of one call. Whoever makes the call tells it how far the answer has come."""

    def __init__(self, limits: TimeLimits, first_content_s: float | None) -> None:
        if first_content_s is not None and limits.first_content_s is not None:
            first_content_s = limits.first_content_s
        self._limits = limits
        self._first_content_s = first_content_s
        self._now = asyncio.get_running_loop().time
        started = self._now()
        self._call_ends = started + limits.call_s
        self._first_content_due = math.inf if first_content_s is None else started + first_content_s
        self.begun = False
        """The model has produced something; preamble does not count."""
        self.delivered = False
        """Some text was handed on."""
        self._tail_ends = math.inf

    @property
    def silent(self) -> bool:
        """Whether nothing that matters has come yet."""
        return not self.begun and self._tail_ends == math.inf

    def finish(self) -> None:
        """The finish reason was seen: nothing that matters can be missing."""
        self._tail_ends = min(self._tail_ends, self._now() + self._limits.tail_s)

    def until(self) -> float:
        """When the wait that begins now has been too long, on the loop's clock."""
        if self.silent:
            return min(self._call_ends, self._first_content_due)
        return min(self._call_ends, self._tail_ends, self._now() + self._limits.idle_s)

    def left(self) -> float:
        """Seconds until the wait that begins now has been too long."""
        return max(self.until() - self._now(), 0.0)

    def lost(self) -> ModelCallError:
        """The failure of a wait that was too long."""
        if self._now() >= self._call_ends:
            kind = FailureKind.STALLED if self.begun else FailureKind.SILENT
            return self.failed(kind, f"the call took longer than {self._limits.call_s:g} s")
        if self.begun:
            return self.failed(FailureKind.STALLED, f"the answer stalled for {self._limits.idle_s:g} s")
        return self.failed(FailureKind.SILENT, f"no content within {self._first_content_s:g} s")

    def failed(self, kind: FailureKind, message: str, status: int | None = None) -> ModelCallError:
        return self.marked(CallFailure(kind=kind, message=message, status=status))

    def marked(self, failure: CallFailure) -> ModelCallError:
        """The failure, with what this call had delivered by now."""
        return ModelCallError(msgspec.structs.replace(failure, content_delivered=self.delivered))
