"""What is recorded of a step's model calls, and of the chain that they go along."""

from decimal import Decimal

from domain.agent import Link
from domain.command import Command
from domain.events import FinishReason
from domain.failure import CallFailure, FailureClass, RunError
from domain.messages import AssistantMessage, Usage


class BeginModelCall(Command, frozen=True, kw_only=True):
    step: int
    provider: str
    model: str


class RecordQueueing(Command, frozen=True, kw_only=True):
    """The call in flight has waited long for its place."""

    step: int


class RecordText(Command, frozen=True, kw_only=True):
    step: int
    text: str


class RecordReply(Command, frozen=True, kw_only=True):
    step: int
    message: AssistantMessage
    finish: FinishReason
    usage: Usage = Usage()
    cost: Decimal | None = None
    currency: str = "USD"
    cached: bool = False


class RecordModelFailure(Command, frozen=True, kw_only=True):
    step: int
    failure_class: FailureClass
    failure: CallFailure
    text: str = ""


class RetryModelCall(Command, frozen=True, kw_only=True):
    """Call the link that has just failed once more, after the wait."""

    wait_ms: int


class SkipLink(Command, frozen=True, kw_only=True):
    link: Link
    reason: str


class UseFallback(Command, frozen=True, kw_only=True):
    """Leave the link that failed, or those that were skipped, for this one."""

    fallback: Link
    reason: str
    restarted: bool = False


class ExhaustChain(Command, frozen=True, kw_only=True):
    """No link is left. The run is to end with this error."""

    error: RunError
