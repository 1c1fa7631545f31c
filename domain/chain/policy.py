"""What follows from a model call's failure: the same link again, the next one, or the end (CHAIN).

Pure: the time left, the random number and what a classifier said come in as arguments.
"""

import math

import msgspec

from domain.agent import FallbackMode as FallbackMode
from domain.chain import errors
from domain.chain.errors import CHAIN_EXHAUSTED as CHAIN_EXHAUSTED
from domain.chain.errors import NO_TOOL_SUPPORT as NO_TOOL_SUPPORT
from domain.chain.state import ChainLink as ChainLink
from domain.chain.state import ChainState as ChainState
from domain.chain.state import LeftLink as LeftLink
from domain.failure import CallFailure, FailureClass, RunError

WINDOW_TOO_SMALL = "window_too_small"
PAYMENT_REQUIRED = "payment_required"
RETRY_WAIT_S = 0.1
RETRY_JITTER_S = 0.4

_RETRIED = frozenset({FailureClass.TRANSIENT, FailureClass.EMPTY, FailureClass.ERROR_PRE})
_MOVES_ON = _RETRIED | {FailureClass.UNAVAILABLE}
NO_FAULT_OF_THE_LINK = frozenset({FailureClass.CANCELLED, FailureClass.INTERNAL})


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a failure is to the chain, by the classifiers and rules that are in force (CLASS-1, CLASS-3)."""

    failure_class: FailureClass
    larger_window: bool = False
    """The request is too long: a link with a larger or unknown window may serve it."""
    payment_required: bool = False
    """The provider wants to be paid: no other model of it will serve the call either."""

    @property
    def moves_on(self) -> bool:
        """Whether another link may serve the call."""
        return self.failure_class in _MOVES_ON or self.larger_window


class Retry(msgspec.Struct, frozen=True, kw_only=True):
    """Call the same link again after the wait."""

    state: ChainState
    wait_s: float


class NextLink(msgspec.Struct, frozen=True, kw_only=True):
    """Call `state.link` now. `left` is what the switch is due to; `skipped` were passed over on the way."""

    state: ChainState
    left: LeftLink
    skipped: tuple[LeftLink, ...] = ()


class Stop(msgspec.Struct, frozen=True, kw_only=True):
    """No call follows. `exhausted`: all of several links failed or were skipped (CHAIN-10)."""

    state: ChainState
    error: RunError
    exhausted: bool
    skipped: tuple[LeftLink, ...] = ()


def begin(state: ChainState) -> ChainState | NextLink | Stop:
    """Select the first link that can serve the turn (CHAIN-4). The state itself, when that is the primary."""
    skipped, position = _next_fit(state, 0)
    if not skipped:
        return state
    if position is None:
        moved = _with(state, left=skipped)
        error = errors.unfit(moved)
        return Stop(state=moved, error=error, exhausted=len(state.links) > 1, skipped=skipped)
    return NextLink(state=_with(state, position=position, left=skipped), left=skipped[0], skipped=skipped)


def answered(state: ChainState, *, streamed: bool) -> ChainState:
    """The step has its reply: the link stays selected for the next step and has its retry back (CHAIN-6)."""
    return _with(state, retried=False, cut=None, streamed=state.streamed or streamed)


def is_last(state: ChainState) -> bool:
    """Whether no other link can take over from this one: it gets all the time that there is (CLASS-2)."""
    return _is_bound(state) or _next_fit(state, state.position + 1)[1] is None


def after(
    state: ChainState,
    verdict: Verdict,
    failure: CallFailure,
    *,
    recover: bool = False,
    remaining_s: float | None = None,
    retry_after_cap_s: float = 2.0,
    random: float = 1.0,
) -> Retry | NextLink | Stop:
    """What a failed call of the step leads to.

    `recover`: the next link may carry on an answer that was cut in the middle (CHAIN-14). `remaining_s` is
    the time to the deadline, which no wait outlives; a link that wishes for more than `retry_after_cap_s`
    is waited for only if no other is left; `random`, from 0 to 1, jitters the wait.
    """
    if not verdict.moves_on or (failure.content_delivered and not recover):
        return _ended(state, verdict, failure)
    if failure.content_delivered:
        return _carried_on(state, verdict, failure)
    if verdict.failure_class in _RETRIED and not state.retried:
        wish_s = _wish_s(failure.retry_after_s)
        wait_s = max(wish_s, RETRY_WAIT_S) + RETRY_JITTER_S * random
        in_time = remaining_s is None or wait_s < remaining_s
        if in_time and (wish_s <= retry_after_cap_s or is_last(state)):
            return Retry(state=_with(state, retried=True), wait_s=wait_s)
    return _ended(state, verdict, failure) if _is_bound(state) else _moved_on(state, verdict, failure)


def _is_bound(state: ChainState) -> bool:
    """Whether the turn would have to start again, but its beginning was seen (CHAIN-7)."""
    return state.restarts and state.streamed


def _carried_on(state: ChainState, verdict: Verdict, failure: CallFailure) -> NextLink | Stop:
    """To the next link that fits. Without one the answer is cut (CHAIN-7), and the chain not exhausted."""
    cut = state.cut or _left(state, verdict, failure)
    moved = _moved_on(_with(state, cut=cut), verdict, failure)
    return moved if isinstance(moved, NextLink) else _ended(state, verdict, failure)


def _moved_on(state: ChainState, verdict: Verdict, failure: CallFailure) -> NextLink | Stop:
    """To the next link that fits. Where there is none, only a chain that was really one is exhausted."""
    skipped, position = _next_fit(state, state.position + 1, verdict)
    if position is None and (verdict.larger_window or state.cut is not None or len(state.links) == 1):
        return _ended(state, verdict, failure)
    left = _left(state, verdict, failure)
    moved = _with(state, retried=False, left=(*state.left, left, *skipped))
    if position is None:
        return Stop(state=moved, error=errors.exhausted(moved), exhausted=True, skipped=skipped)
    return NextLink(state=_with(moved, position=position), left=left, skipped=skipped)


def _ended(state: ChainState, verdict: Verdict, failure: CallFailure) -> Stop:
    error = errors.ended(state, verdict.failure_class, failure)
    if verdict.failure_class not in NO_FAULT_OF_THE_LINK:
        state = _with(state, left=(*state.left, _left(state, verdict, failure)))
    return Stop(state=state, error=error, exhausted=False)


def _next_fit(
    state: ChainState, start: int, verdict: Verdict | None = None
) -> tuple[tuple[LeftLink, ...], int | None]:
    """The links passed over from `start` on, and the place of the first that fits."""
    skipped: list[LeftLink] = []
    for position, candidate in enumerate(state.links[start:], start):
        reason = _misfit(state, candidate, verdict)
        if reason is None:
            return tuple(skipped), position
        skipped.append(LeftLink(link=candidate.link, reason=reason))
    return tuple(skipped), None


def _misfit(state: ChainState, candidate: ChainLink, verdict: Verdict | None) -> str | None:
    if state.needs_tools and not candidate.supports_tools:
        return NO_TOOL_SUPPORT
    if verdict is None:
        return None
    if verdict.larger_window and _is_no_larger(candidate, state.candidate):
        return WINDOW_TOO_SMALL
    unpaid = verdict.payment_required and candidate.link.provider == state.link.provider
    return PAYMENT_REQUIRED if unpaid else None


def _is_no_larger(candidate: ChainLink, than: ChainLink) -> bool:
    windows = (candidate.context_window, than.context_window)
    return windows[0] is not None and windows[1] is not None and windows[0] <= windows[1]


def _wish_s(retry_after_s: float | None) -> float:
    return retry_after_s if retry_after_s is not None and math.isfinite(retry_after_s) else 0.0


def _left(state: ChainState, verdict: Verdict, failure: CallFailure) -> LeftLink:
    return LeftLink(
        link=state.link, reason=failure.message, failure_class=verdict.failure_class, failure=failure
    )


_with = msgspec.structs.replace
