"""What a run's facts say about the calls besides its agent's own, and about what came of them (CHAIN-13)."""

from typing import assert_never

import msgspec

from domain.events import side as s
from domain.messages import Usage


class SideCall(msgspec.Struct, frozen=True, kw_only=True):
    """The side call in flight."""

    purpose: s.SidePurpose
    attempt: int
    provider: str
    model: str
    queued: bool = False
    """Whether it was told that it waits for a place."""


class ContextStanding(msgspec.Struct, frozen=True, kw_only=True):
    """How long the model's context is, and what of it is summarised."""

    summary: s.Summary | None = None
    """What the model is shown in place of the first messages of the conversation."""
    reported: int = 0
    """Tokens of the last call, input and output, as its provider counted them; 0: nobody has."""
    reported_at: int = 0
    """How many messages of the turn those were."""
    failures: int = 0
    failed_after: int | None = None
    """The step after which no summary could be had."""


class CriterionStanding(msgspec.Struct, frozen=True, kw_only=True):
    """What the judge has said."""

    verdict: s.CriterionJudged | None = None
    """On the answer that stands. None: it was not asked about."""
    rounds: int = 0
    """How many answers were sent back."""


class Beside(msgspec.Struct, frozen=True, kw_only=True):
    """What stands beside the agent's own turn."""

    calling: SideCall | None = None
    attempts: int = 0
    """Calls for the summary or verdict that is being asked for."""
    failed: bool = False
    """Whether the last of them failed, so that another link may follow."""
    context: ContextStanding = ContextStanding()
    criterion: CriterionStanding = CriterionStanding()

    def after_reply(self, usage: Usage, messages: int) -> "Beside":
        """The agent's model has replied. The turn has so many messages now."""
        reported = usage.input_tokens + usage.output_tokens if usage.input_tokens else 0
        context = _with(self.context, reported=reported, reported_at=messages)
        return _with(self, context=context, criterion=_with(self.criterion, verdict=None))

    def for_next_link(self) -> "Beside":
        """The turn begins again. The summary may stand for what is no longer there; it is found again."""
        context = _with(self.context, summary=None, reported=0, reported_at=0)
        return _with(self, context=context)


def evolve(beside: Beside, event: s.SideEvent, step: int) -> Beside:  # noqa: C901 - one flat dispatch
    """Fold one fact in. `step` is the last one of the turn that was begun."""
    match event:
        case s.SideCallStarted(purpose=purpose, attempt=attempt, provider=provider, model=model):
            call = SideCall(purpose=purpose, attempt=attempt, provider=provider, model=model)
            return _with(beside, calling=call, attempts=attempt, failed=False)
        case s.SideCallQueued():
            return _with(beside, calling=_with(beside.calling, queued=True) if beside.calling else None)
        case s.SideCallReplied(flaw=flaw):
            return _with(beside, calling=None, failed=flaw is not None)
        case s.SideCallFailed():
            return _with(beside, calling=None, failed=True)
        case s.SideFallbackUsed():
            return _with(beside, failed=False)
        case s.ContextCompacted(summary=summary):
            context = _with(beside.context, summary=summary, reported=0, failed_after=None)
            return _asked(beside, context=context)
        case s.CompactionFailed():
            failures = beside.context.failures + 1
            return _asked(beside, context=_with(beside.context, failures=failures, failed_after=step))
        case s.CriterionJudged():
            return _asked(beside, criterion=_with(beside.criterion, verdict=event))
        case s.AnswerSentBack(round=number):
            return _with(beside, criterion=CriterionStanding(rounds=number))
        case _:
            assert_never(event)


def _asked(beside: Beside, **changes: object) -> Beside:
    """What was asked for is there, or was given up: the next asking begins anew."""
    return _with(beside, calling=None, attempts=0, failed=False, **changes)


_with = msgspec.structs.replace
