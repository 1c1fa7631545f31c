"""What may be asked of a run about the calls besides its agent's own (CHAIN-13)."""

from decimal import Decimal

from domain.binding import Link
from domain.command import Command
from domain.events.side import SidePurpose, Summary
from domain.failure import CallFailure, FailureClass, RunError
from domain.messages import Usage


class BeginSideCall(Command, frozen=True, kw_only=True):
    purpose: SidePurpose
    provider: str
    model: str


class RecordSideQueueing(Command, frozen=True, kw_only=True):
    """The side call in flight has waited long for its place."""


class RecordSideReply(Command, frozen=True, kw_only=True):
    usage: Usage = Usage()
    cost: Decimal | None = None
    currency: str = "USD"
    cached: bool = False
    flaw: str | None = None


class RecordSideFailure(Command, frozen=True, kw_only=True):
    failure_class: FailureClass
    failure: CallFailure


class UseSideFallback(Command, frozen=True, kw_only=True):
    """Leave the link whose side call has just failed for this one."""

    purpose: SidePurpose
    primary: Link
    fallback: Link
    failure_class: FailureClass
    reason: str
    skipped: tuple[Link, ...] = ()


class CompactContext(Command, frozen=True, kw_only=True):
    """Show the model this summary from here on."""

    summary: Summary
    context_tokens: int
    reused: bool = False


class GiveUpCompaction(Command, frozen=True, kw_only=True):
    error: RunError


class JudgeAnswer(Command, frozen=True, kw_only=True):
    met: bool
    reason: str


class SendBack(Command, frozen=True, kw_only=True):
    """Tell the model why its answer does not meet the criterion."""

    message: str


SideCommand = (
    BeginSideCall
    | RecordSideQueueing
    | RecordSideReply
    | RecordSideFailure
    | UseSideFallback
    | CompactContext
    | GiveUpCompaction
    | JudgeAnswer
    | SendBack
)
