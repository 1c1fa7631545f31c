"""Facts about the calls that a run makes besides its agent's own, and what came of them (CHAIN-13).

They are priced at the model that answered and count as the run's own tokens and cost; the run's provider and
model stay its agent's, and none of this is a move along the agent's chain.
"""

from decimal import Decimal
from enum import StrEnum

import msgspec

from domain.binding import Link
from domain.event import Event
from domain.failure import CallFailure, ErrorClass, FailureClass
from domain.ids import RunId
from domain.messages import Usage


class SidePurpose(StrEnum):
    """What a model is called for besides the agent's turn."""

    COMPACTION = "compaction"
    JUDGE = "judge"


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """What stands for the first messages of a conversation. Of no other: `digest` is of what they say."""

    messages: int
    digest: str
    text: str


class SideCallStarted(Event, frozen=True, kw_only=True, tag="side-call.started.v1"):
    """A call begins. `attempt` counts from 1 until there is a summary or a verdict, over all links."""

    purpose: SidePurpose
    attempt: int
    provider: str
    model: str


class SideCallQueued(Event, frozen=True, kw_only=True, tag="side-call.queued.v1"):
    """The call still waits for a place at its provider. Told once, when that has taken a while (CONC-2)."""

    purpose: SidePurpose
    attempt: int
    provider: str
    model: str


class SideCallReplied(Event, frozen=True, kw_only=True, tag="side-call.replied.v1"):
    """The call came back. `flaw`: why its reply is of no use, so that it counts as one that failed.

    What it says is in the event that follows from it.
    """

    purpose: SidePurpose
    attempt: int
    provider: str
    model: str
    usage: Usage = Usage()
    cost: Decimal | None = None
    currency: str = "USD"
    cached: bool = False
    flaw: str | None = None


class SideCallFailed(Event, frozen=True, kw_only=True, tag="side-call.failed.v1"):
    """The call failed. The same link is called again, another one, or none; later events say which."""

    purpose: SidePurpose
    attempt: int
    provider: str
    model: str
    failure_class: FailureClass
    failure: CallFailure


class SideFallbackUsed(Event, frozen=True, kw_only=True, tag="side-fallback.used.v1"):
    """The calls for this purpose go to another link of their binding. `skipped` were passed over."""

    purpose: SidePurpose
    primary: Link
    fallback: Link
    failure_class: FailureClass
    reason: str
    skipped: tuple[Link, ...] = ()


class ContextCompacted(Event, frozen=True, kw_only=True, tag="context.compacted.v1"):
    """From here on the model is shown the summary in place of the messages that it stands for.

    The messages stay on record. `context_tokens`: how long the context was before. `reused`: the summary was
    on record already, and nobody was asked for it.
    """

    summary: Summary
    context_tokens: int
    reused: bool = False


class CompactionFailed(Event, frozen=True, kw_only=True, tag="context.compaction-failed.v1"):
    """There is no new summary. The turn goes on with the context as it is."""

    error: str
    error_type: str
    error_class: ErrorClass


class CriterionJudged(Event, frozen=True, kw_only=True, tag="criterion.judged.v1"):
    """The judge has held the answer against the criterion."""

    met: bool
    reason: str


class AnswerSentBack(Event, frozen=True, kw_only=True, tag="answer.sent-back.v1"):
    """The criterion was not met, so the model is told why and goes on. `round` counts from 1."""

    round: int
    message: str


class SessionSummarised(Event, frozen=True, kw_only=True, tag="session.summarised.v1"):
    """This run had the beginning of the conversation summarised. Runs after it need not ask again."""

    run_id: RunId
    summary: Summary


SideCallEvent = SideCallStarted | SideCallQueued | SideCallReplied | SideCallFailed | SideFallbackUsed
SideEvent = SideCallEvent | ContextCompacted | CompactionFailed | CriterionJudged | AnswerSentBack
