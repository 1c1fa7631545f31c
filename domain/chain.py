"""What follows from a model call's failure: the same link again, the next one, or the end (CHAIN).

Pure: the time left, the random number and what a classifier said come in as arguments. One `ChainState`
lives as long as its turn, so a link that was left in one step is not tried again in a later one.
"""

import math

import msgspec

from domain.agent import FallbackMode as FallbackMode
from domain.agent import Link
from domain.failure import CallFailure, ErrorClass, FailureClass, RunError, error_of

NO_TOOL_SUPPORT = "no_tool_support"
WINDOW_TOO_SMALL = "window_too_small"
RETRY_WAIT_S = 0.1
RETRY_JITTER_S = 0.4
CHAIN_EXHAUSTED = "chain_exhausted"

_RETRIED = frozenset({FailureClass.TRANSIENT, FailureClass.EMPTY, FailureClass.ERROR_PRE})
_MOVES_ON = _RETRIED | {FailureClass.UNAVAILABLE}
NO_FAULT_OF_THE_LINK = frozenset({FailureClass.CANCELLED, FailureClass.INTERNAL})


class ChainLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link, and what its model was declared to be able to do."""

    link: Link
    supports_tools: bool = False
    supports_prefill: bool = False
    context_window: int | None = None


class LeftLink(msgspec.Struct, frozen=True, kw_only=True):
    """A link that the turn has used up, and why. Without a failure it was skipped, not called."""

    link: Link
    reason: str
    failure_class: FailureClass | None = None
    failure: CallFailure | None = None


class ChainState(msgspec.Struct, frozen=True, kw_only=True):
    """Where a turn stands in its chain."""

    links: tuple[ChainLink, ...]
    needs_tools: bool = False
    mode: FallbackMode = FallbackMode.CONTINUE
    position: int = 0
    retried: bool = False
    """Whether the one retry that the link has in this step is spent (CHAIN-2)."""
    streamed: bool = False
    """Whether an earlier step of the turn has streamed content."""
    left: tuple[LeftLink, ...] = ()

    @property
    def link(self) -> Link:
        """The link to call."""
        return self.links[self.position].link

    @property
    def fallbacks_taken(self) -> tuple[Link, ...]:
        """The links that failed or were skipped, never the one that answers (CHAIN-11).

        A chain of one link has nothing to list.
        """
        return () if len(self.links) == 1 else tuple(left.link for left in self.left)


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
        return Stop(state=moved, error=_unfit(moved), exhausted=len(state.links) > 1, skipped=skipped)
    return NextLink(state=_with(state, position=position, left=skipped), left=skipped[0], skipped=skipped)


def answered(state: ChainState, *, streamed: bool) -> ChainState:
    """The step has its reply: the link stays selected for the next step and has its retry back (CHAIN-6)."""
    return _with(state, retried=False, streamed=state.streamed or streamed)


def after(
    state: ChainState,
    failure_class: FailureClass,
    failure: CallFailure,
    *,
    larger_window: bool = False,
    recover: bool = False,
    remaining_s: float | None = None,
    random: float = 1.0,
) -> Retry | NextLink | Stop:
    """What a failed call of the step leads to.

    `failure_class` is the classifier's word if it had one. `larger_window`: the failure is a context overflow
    that a link with a larger or unknown window may cure (CLASS-3). `recover`: the next link may carry on an
    answer that was cut in the middle (CHAIN-14). `remaining_s` is the time to the run's
    deadline, which no wait outlives; `random`, from 0 to 1, jitters the wait.
    """
    if not (failure_class in _MOVES_ON or larger_window):
        return _ended(state, failure_class, failure)
    if failure.content_delivered:
        if recover and state.position + 1 < len(state.links):
            return _carried_on(state, failure_class, failure)
        return _ended(state, failure_class, failure)
    if failure_class in _RETRIED and not state.retried:
        wait_s = _wait_s(failure.retry_after_s, random)
        if remaining_s is None or wait_s < remaining_s:
            return Retry(state=_with(state, retried=True), wait_s=wait_s)
    if state.mode is FallbackMode.RESTART and state.streamed:
        return _ended(state, failure_class, failure)  # the turn cannot start again: its beginning was seen
    return _moved_on(state, failure_class, failure, larger_window)


def _carried_on(state: ChainState, failure_class: FailureClass, failure: CallFailure) -> NextLink | Stop:
    """To the next link that fits. Without one the answer is cut (CHAIN-7), the chain not exhausted."""
    moved = _moved_on(state, failure_class, failure, larger_window=False)
    return moved if isinstance(moved, NextLink) else _ended(state, failure_class, failure)


def _moved_on(
    state: ChainState, failure_class: FailureClass, failure: CallFailure, larger_window: bool
) -> NextLink | Stop:
    window = state.links[state.position].context_window if larger_window else None
    skipped, position = _next_fit(state, state.position + 1, window)
    if position is None and (larger_window or len(state.links) == 1):
        return _ended(state, failure_class, failure)
    left = _left(state, failure_class, failure)
    moved = _with(state, retried=False, left=(*state.left, left, *skipped))
    if position is None:
        return Stop(state=moved, error=_exhausted(moved), exhausted=True, skipped=skipped)
    return NextLink(state=_with(moved, position=position), left=left, skipped=skipped)


def _ended(state: ChainState, failure_class: FailureClass, failure: CallFailure) -> Stop:
    error = error_of(state.link.provider, failure_class, failure)
    if state.left:
        error = _with(error, message=f"{error.message}; before it, {_trail(state.left)}")
    if failure_class not in NO_FAULT_OF_THE_LINK:
        state = _with(state, left=(*state.left, _left(state, failure_class, failure)))
    return Stop(state=state, error=error, exhausted=False)


def _next_fit(
    state: ChainState, start: int, window: int | None = None
) -> tuple[tuple[LeftLink, ...], int | None]:
    """The links passed over from `start` on, and the place of the first that fits."""
    skipped: list[LeftLink] = []
    for position, candidate in enumerate(state.links[start:], start):
        reason = _misfit(state, candidate, window)
        if reason is None:
            return tuple(skipped), position
        skipped.append(LeftLink(link=candidate.link, reason=reason))
    return tuple(skipped), None


def _misfit(state: ChainState, candidate: ChainLink, window: int | None) -> str | None:
    if state.needs_tools and not candidate.supports_tools:
        return NO_TOOL_SUPPORT
    if window is not None and candidate.context_window is not None and candidate.context_window <= window:
        return WINDOW_TOO_SMALL
    return None


def _wait_s(retry_after_s: float | None, random: float) -> float:
    wish = retry_after_s if retry_after_s is not None and math.isfinite(retry_after_s) else 0.0
    return max(wish, RETRY_WAIT_S) + RETRY_JITTER_S * random


def _left(state: ChainState, failure_class: FailureClass, failure: CallFailure) -> LeftLink:
    return LeftLink(link=state.link, reason=failure.message, failure_class=failure_class, failure=failure)


def _exhausted(state: ChainState) -> RunError:
    """The first link's error; its message names every link and why each was left (CHAIN-10)."""
    for left in state.left:
        if left.failure is not None and left.failure_class is not None:
            first = error_of(left.link.provider, left.failure_class, left.failure)
            message = f"{first.message}; no link is left: {_trail(state.left)}"
            return RunError(message=message, type=CHAIN_EXHAUSTED, error_class=first.error_class)
    return _unfit(state)


def _unfit(state: ChainState) -> RunError:
    return RunError(
        message=f"the turn carries tools, and no link declares supports_tools: {_trail(state.left)}",
        type=CHAIN_EXHAUSTED if len(state.links) > 1 else NO_TOOL_SUPPORT,
        error_class=ErrorClass.INVALID,
    )


def _trail(left: tuple[LeftLink, ...]) -> str:
    return "; ".join(
        f"{one.link} failed ({one.failure_class}): {one.reason}"
        if one.failure_class
        else f"{one.link} was skipped: {one.reason}"
        for one in left
    )


_with = msgspec.structs.replace
