"""What a run is told when its chain has come to an end: the cause, then all that was tried (CHAIN-10)."""

import msgspec

from domain.chain.state import ChainState, LeftLink
from domain.failure import BY_INTENT, CallFailure, ErrorClass, FailureClass, RunError, error_of

NO_TOOL_SUPPORT = "no_tool_support"
CHAIN_EXHAUSTED = "chain_exhausted"


def ended(state: ChainState, failure_class: FailureClass, failure: CallFailure) -> RunError:
    """The error of a failure that nothing follows, although links may be left. `state` is before it.

    Where it ended the carrying on of an answer, what the run has failed of is that answer's cut (CHAIN-14).
    """
    cut = None if state.cut is None or failure_class in BY_INTENT else state.cut.error
    if cut is not None:
        last = LeftLink(link=state.link, reason=failure.message, failure_class=failure_class, failure=failure)
        return _with_trail(cut, "it was not carried on", (*state.left, last))
    error = error_of(state.link.provider, failure_class, failure)
    return _with_trail(error, "before it", state.left) if state.left else error


def exhausted(state: ChainState) -> RunError:
    """The first link's error. `retry_after_s` is when the first of all of them may serve again."""
    errors = [error for left in state.left if (error := left.error) is not None]
    if not errors:
        return unfit(state)
    waits_s = [error.retry_after_s for error in errors if error.retry_after_s is not None]
    return msgspec.structs.replace(
        _with_trail(errors[0], "no link is left", state.left),
        type=CHAIN_EXHAUSTED,
        retry_after_s=min(waits_s, default=None),
    )


def unfit(state: ChainState) -> RunError:
    """No link was called, because none can serve the turn (CHAIN-4)."""
    return RunError(
        message=f"the turn carries tools, and no link declares supports_tools: {_trail(state.left)}",
        type=CHAIN_EXHAUSTED if len(state.links) > 1 else NO_TOOL_SUPPORT,
        error_class=ErrorClass.INVALID,
    )


def _with_trail(error: RunError, how: str, left: tuple[LeftLink, ...]) -> RunError:
    return msgspec.structs.replace(error, message=f"{error.message}; {how}: {_trail(left)}")


def _trail(left: tuple[LeftLink, ...]) -> str:
    return "; ".join(
        f"{one.link} failed ({one.failure_class}): {one.reason}"
        if one.failure_class
        else f"{one.link} was skipped: {one.reason}"
        for one in left
    )
