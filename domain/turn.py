"""The plan of a turn: what a running run does next. It plans; the actor performs (`DESIGN`: a run's life)."""

from collections.abc import Callable

import msgspec

from domain.failure import ErrorClass, RunError
from domain.messages import ToolCall
from domain.run import Run, RunStatus


class TurnLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one turn."""

    max_steps: int = 50
    max_length_continuations: int = 3
    max_nudges: int = 1


class CallModel(msgspec.Struct, frozen=True, kw_only=True):
    """Make the next step's model call."""

    step: int


class CallTools(msgspec.Struct, frozen=True, kw_only=True):
    """Get a result for each of these calls, in this order unless they may run together."""

    calls: tuple[ToolCall, ...]


class TellMissing(msgspec.Struct, frozen=True, kw_only=True):
    """The turn ended without its deliverable: tell the model, and go on (CHAIN-9)."""

    missing: str


class Complete(msgspec.Struct, frozen=True):
    """The turn has its answer: end the run."""


class GiveUp(msgspec.Struct, frozen=True, kw_only=True):
    """The turn cannot go on: end the run with this error."""

    error: RunError


class Rest(msgspec.Struct, frozen=True):
    """Nothing to do: the run has ended, has not started, or waits for the model call in flight."""


Action = CallModel | CallTools | TellMissing | Complete | GiveUp | Rest

Lacking = Callable[[Run], str | None]
"""What a turn that has its answer still lacks: a sentence, or None if it is whole."""


def _nothing(_: Run) -> None:
    return None


def next_action(run: Run, limits: TurnLimits, lacking: Lacking = _nothing) -> Action:
    """What follows from the facts so far. Pure: the same facts always give the same answer."""
    if run.status is not RunStatus.RUNNING or run.calling is not None:
        return Rest()
    if run.open_calls:
        return CallTools(calls=tuple(open_call.call for open_call in run.open_calls))
    if run.standing.exhausted is not None:
        return GiveUp(error=run.standing.exhausted)
    if run.failed:
        return CallModel(step=run.step)
    if run.answer and not _is_carried_on(run, limits):
        return _at_the_end(run, limits, lacking)
    if run.step >= limits.max_steps:
        return GiveUp(error=_too_many_steps(limits))
    return CallModel(step=run.step + 1)


def _is_carried_on(run: Run, limits: TurnLimits) -> bool:
    """Whether a text that its output limit ended gets another call (CHAIN-8)."""
    return (
        bool(run.unfinished_text)
        and run.continuations < limits.max_length_continuations
        and run.step < limits.max_steps
    )


def _at_the_end(run: Run, limits: TurnLimits, lacking: Lacking) -> Action:
    missing = lacking(run)
    if missing is None:
        return Complete()
    if run.nudges < limits.max_nudges and run.step < limits.max_steps:
        return TellMissing(missing=missing)
    return GiveUp(error=_missing_deliverable(missing, run.nudges))


def _missing_deliverable(missing: str, nudges: int) -> RunError:
    return RunError(
        message=f"the turn ended without its deliverable, after {nudges} nudges: {missing}",
        type="missing_deliverable",
        error_class=ErrorClass.INVALID,
    )


def _too_many_steps(limits: TurnLimits) -> RunError:
    return RunError(
        message=f"the turn took {limits.max_steps} steps without an answer; turn.max_steps raises the limit",
        type="turn_steps_exceeded",
        error_class=ErrorClass.QUOTA_EXCEEDED,
    )
