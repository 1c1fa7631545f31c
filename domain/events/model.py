"""What a run asked of models, and what came of it: the links of its chain, call by call."""

from decimal import Decimal
from enum import StrEnum

from domain.agent import Link
from domain.event import Event
from domain.failure import CallFailure, ErrorClass, FailureClass
from domain.messages import AssistantMessage, Usage


class FinishReason(StrEnum):
    """Why a model stopped writing, in the field's common terms."""

    STOP = "stop"
    TOOL_CALLS = "tool_calls"
    LENGTH = "length"


class ModelCallStarted(Event, frozen=True, kw_only=True, tag="model-call.started.v1"):
    """A call to a link begins. `attempt` counts the calls of this step from 1, over all links."""

    step: int
    attempt: int
    provider: str
    model: str


class ModelCallQueued(Event, frozen=True, kw_only=True, tag="model-call.queued.v1"):
    """The call still waits for a place at its provider. Told once, when that has taken a while (CONC-2)."""

    step: int
    attempt: int
    provider: str
    model: str


class TextDelta(Event, frozen=True, kw_only=True, tag="text.delta.v1"):
    """Some more of the answer's text. `ModelReplied` repeats it whole; nothing but a watcher needs this."""

    step: int
    text: str


class ModelReplied(Event, frozen=True, kw_only=True, tag="model.replied.v1"):
    """One model call came back with content. A `cost` of None means that the price is unknown, not zero.

    `currency` is the one that prices were set in at the time; without a cost it means nothing.
    """

    step: int
    provider: str
    model: str
    message: AssistantMessage
    finish: FinishReason
    usage: Usage = Usage()
    cost: Decimal | None = None
    currency: str = "USD"
    cached: bool = False
    """An earlier reply to the very same request was given again; no call was made."""


class ModelCallFailed(Event, frozen=True, kw_only=True, tag="model-call.failed.v1"):
    """One call to a link failed. What follows from it is an event of its own."""

    step: int
    attempt: int
    provider: str
    model: str
    failure_class: FailureClass
    failure: CallFailure
    text: str = ""
    """What watchers were shown of its answer, where that stands in no TextDelta (CHAIN-7)."""


class ModelCallRetried(Event, frozen=True, kw_only=True, tag="model-call.retried.v1"):
    """The link that failed is called once more in this step, after the wait (CHAIN-2)."""

    step: int
    provider: str
    model: str
    failure_class: FailureClass
    wait_ms: int


class ChainLinkSkipped(Event, frozen=True, kw_only=True, tag="chain-link.skipped.v1"):
    """A link was passed over without a call: its model cannot do what the turn needs (CHAIN-4)."""

    step: int
    provider: str
    model: str
    reason: str


class ModelFallbackUsed(Event, frozen=True, kw_only=True, tag="model-fallback.used.v1"):
    """From here on the turn is on another link (CHAIN-11). `primary` is the agent's own.

    Without a class the switch is due to a skip. `restarted`: the turn begins again from its input (CHAIN-6).
    """

    primary: Link
    fallback: Link
    failure_class: FailureClass | None = None
    reason: str
    step: int
    restarted: bool = False


class ChainExhausted(Event, frozen=True, kw_only=True, tag="chain.exhausted.v1"):
    """No link is left: all of `links` failed or were skipped. The run gets the first's error (CHAIN-10)."""

    step: int
    links: tuple[Link, ...]
    error: str
    error_class: ErrorClass
    retry_after_s: float | None = None
