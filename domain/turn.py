"""The plan of a turn: what a running run does next. It plans; the actor performs (`DESIGN`: a run's life)."""

from collections.abc import Callable
from itertools import takewhile

import msgspec

from domain import criterion
from domain.compaction import Summarise, UseSummary
from domain.criterion import AskJudge, TellUnmet
from domain.failure import ErrorClass, RunError
from domain.messages import ToolCall
from domain.run import OpenCall, Run, RunStatus


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


class AskApproval(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody must say of these calls whether they may be made; what comes after them waits (TOOL-2)."""

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
    """Nothing to do: the run has ended, has not started, or waits for a call in flight."""


SideAction = UseSummary | Summarise | AskJudge | TellUnmet
"""What is done with other models than the agent's own, or follows from their word (CHAIN-13)."""

Action = CallModel | CallTools | AskApproval | SideAction | TellMissing | Complete | GiveUp | Rest

Lacking = Callable[[Run], str | None]
"""What a turn that has its answer still lacks: a sentence, or None if it is whole."""

Overfull = Callable[[Run], UseSummary | Summarise | None]
"""What is to be done about the model's context before its next call; None if nothing is (CHAIN-13)."""


Gated = Callable[[OpenCall], bool]
"""Whether a call is not to be made before somebody has said that it may be (TOOL-2)."""


def _nothing(_: Run) -> None:
    return None


def _free(_: OpenCall) -> bool:
    return False


def next_action(
    run: Run,
    limits: TurnLimits,
    lacking: Lacking = _nothing,
    overfull: Overfull = _nothing,
    gated: Gated = _free,
) -> Action:
    """What follows from the facts so far. Pure: the same facts always give the same answer."""
    if run.status is not RunStatus.RUNNING or run.calling is not None or run.beside.calling is not None:
        return Rest()
    if run.open_calls:
        return _with_calls(run, gated)
    if run.standing.exhausted is not None:
        return GiveUp(error=run.standing.exhausted)
    if run.failed:
        return overfull(run) or CallModel(step=run.step)
    if run.answer and not _is_carried_on(run, limits):
        return _at_the_end(run, limits, lacking)
    if run.step >= limits.max_steps:
        return GiveUp(error=_too_many_steps(limits))
    return overfull(run) or CallModel(step=run.step + 1)


def _with_calls(run: Run, gated: Gated) -> CallTools | AskApproval:
    """Calls before the first gated one are made. It and those after it keep the model's order: they wait."""
    ahead = tuple(one.call for one in takewhile(lambda one: not gated(one), run.open_calls))
    if ahead:
        return CallTools(calls=ahead)
    return AskApproval(calls=tuple(one.call for one in run.open_calls if gated(one)))


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
        return _judged(run, limits)
    if run.nudges < limits.max_nudges and run.step < limits.max_steps:
        return TellMissing(missing=missing)
    return GiveUp(error=_missing_deliverable(missing, run.nudges))


def _judged(run: Run, limits: TurnLimits) -> Action:
    verdict = criterion.at_the_end(run, may_go_on=run.step < limits.max_steps)
    if isinstance(verdict, RunError):
        return GiveUp(error=verdict)
    return verdict or Complete()


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
