"""Whether an interrupted run is continued, and with what (CONT).

A run is continued by another one: from the same input, in the same session, with what the interrupted ones
had their tools do. It is not continued where nobody could use its end, or where going on might do harm twice.
"""

from collections.abc import Iterator, Sequence

import msgspec

from domain import events as e
from domain.commands import CreateRun, NoteBlocked
from domain.events import ContinuationBlock as Block
from domain.evolve import fold
from domain.ids import RunId
from domain.ledger import Ledger, inherited
from domain.run import OpenCall, Run, RunStatus

ORPHANED = "orphaned"
"""The error type of a run that was closed because its host was gone (RECON-2)."""

_NOT_TO_BE_REPEATED = frozenset({e.ToolEffect.DESTRUCTIVE, e.ToolEffect.EXTERNAL})


class PastRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a chain, as its stream has it."""

    run_id: RunId
    events: tuple[e.RunEvent, ...]
    children: dict[str, tuple["PastRun", ...]] = {}
    """The runs that its open calls to agents were, by call id; each behind those that it goes on from."""


class Continue(msgspec.Struct, frozen=True, kw_only=True):
    """Open this run; what the ledger has is not done again."""

    command: CreateRun
    ledger: Ledger


class Blocked(msgspec.Struct, frozen=True, kw_only=True):
    """Leave it as it is, and say why."""

    cause: Block
    reason: str
    remedy: str

    @property
    def command(self) -> NoteBlocked:
        return NoteBlocked(cause=self.cause, reason=self.reason, remedy=self.remedy)


class NothingToDo(msgspec.Struct, frozen=True):
    """The run was not interrupted, or it was continued already."""


Verdict = Continue | Blocked | NothingToDo


def judge(chain: Sequence[PastRun], max_attempts: int, cancelled: bool = False) -> Verdict:
    """What becomes of the last run of a chain in which each continues the one before it.

    `max_attempts`: how many continuations one chain may have. `cancelled`: a cancel of the last run was
    accepted, and came too late for whoever closed it.
    """
    runs = [fold(past.run_id, past.events) for past in chain]
    last = runs[-1]
    if last.created is None or not was_orphaned(last) or last.continued_by is not None:
        return NothingToDo()
    blocked = (
        _never_continued(last, last.created)
        or (_was_ending() if cancelled else None)
        or _attempts_used_up(runs, max_attempts)
        or _outcome_unknown(chain)
    )
    if blocked is not None:
        return blocked
    ledger = inherited((past.run_id, with_answers(past)) for past in chain)
    return Continue(command=_anew(last, last.created), ledger=ledger)


def was_orphaned(run: Run) -> bool:
    """Whether the run was closed because its host was gone."""
    return run.status is RunStatus.FAILED and run.failed_as == ORPHANED


def uncertain_calls(run: Run) -> tuple[OpenCall, ...]:
    """Calls that were begun, that nobody knows the end of, and that must not be made twice (CONT-3)."""
    return tuple(
        open_call
        for open_call in run.open_calls
        if open_call.outcome_unknown
        and open_call.effect in _NOT_TO_BE_REPEATED
        and not open_call.safe_to_repeat
    )


def agent_unavailable(reason: str) -> Blocked:
    """The agent cannot be run with this input any more."""
    return Blocked(
        cause=Block.AGENT_UNAVAILABLE,
        reason=f"the agent cannot be run as it was: {reason}",
        remedy="Define the agent again as it was and submit the input again (GET /api/runs/{id}/input).",
    )


def _never_continued(run: Run, created: e.RunCreated) -> Blocked | None:
    """What no setting and no finding changes (CONT-4)."""
    if created.kind is e.RunKind.WORKFLOW:
        return Blocked(
            cause=Block.WORKFLOW_RUN,
            reason="a workflow run is resumed from its checkpoints",
            remedy=f"POST /api/workflows/runs/{run.id}/resume",
        )
    if created.parent_run_id is not None:
        root = created.root_run_id or created.parent_run_id
        return Blocked(
            cause=Block.CHILD_RUN,
            reason="it is a child run: nothing waits for its answer any more",
            remedy=f"See what became of the root of its tree, run {root}.",
        )
    if created.session_id is None:
        return Blocked(
            cause=Block.NO_SESSION,
            reason="the run belongs to no session",
            remedy="Submit its input again. Runs with a session_id are continued.",
        )
    if run.cancel_requested or run.stopping:
        return _was_ending()
    return _not_recorded(run, created)


def _was_ending() -> Blocked:
    return Blocked(
        cause=Block.WAS_ENDING,
        reason="the run was being ended, by a cancel or by its deadline, when it was interrupted",
        remedy="If it is wanted after all, submit its input again.",
    )


def _not_recorded(run: Run, created: e.RunCreated) -> Blocked | None:
    again = "Submit what it was asked again."
    if not created.input:
        return Blocked(
            cause=Block.INPUT_NOT_RECORDED, reason="the run's input was not recorded", remedy=again
        )
    declared = run.definition.parameters if run.definition else {}
    missing = [
        name for name, default in declared.items() if default is None and name not in created.parameters
    ]
    if missing:
        return Blocked(
            cause=Block.PARAMETERS_NOT_RECORDED,
            reason=f"the agent needs parameters that were not recorded: {', '.join(missing)}",
            remedy=again,
        )
    return None


def _attempts_used_up(runs: Sequence[Run], max_attempts: int) -> Blocked | None:
    made = sum(was_orphaned(run) for run in runs[:-1])
    if made < max_attempts:
        return None
    return Blocked(
        cause=Block.ATTEMPTS_USED_UP,
        reason=f"the work was interrupted {made + 1} times; run_continuation.max_attempts is {max_attempts}",
        remedy="Find out what interrupts it, then submit its input again.",
    )


def open_children(run: Run, events: Sequence[e.RunEvent]) -> dict[str, RunId]:
    """The runs that its calls to agents were which have no result: the last one of each call."""
    waiting = {open_call.call.id for open_call in run.open_calls if open_call.outcome_unknown}
    started = (event for event in events if isinstance(event, e.ChildRunStarted))
    return {event.cause: event.run_id for event in started if event.cause in waiting}


def with_answers(past: PastRun) -> tuple[e.RunEvent, ...]:
    """Its events, and what its children had answered which it did not live to record."""
    answers: list[e.RunEvent] = []
    for call_id, chain in past.children.items():
        child = fold(chain[-1].run_id, chain[-1].events)
        if child.status is RunStatus.COMPLETED and child.created is not None:
            answers.append(e.ToolReturned(call_id=call_id, tool=child.created.agent, output=child.answer))
    return (*past.events, *answers)


def _uncertain(past: PastRun) -> Iterator[tuple[RunId, OpenCall]]:
    """Its uncertain calls, and those of the runs that its calls to agents were."""
    run = fold(past.run_id, past.events)
    asked = frozenset(run.definition.agents if run.definition else ())
    for open_call in uncertain_calls(run):
        if open_call.call.name not in asked:
            yield past.run_id, open_call
        for child in past.children.get(open_call.call.id, ()):
            yield from _uncertain(child)


def _outcome_unknown(chain: Sequence[PastRun]) -> Blocked | None:
    for past in chain:
        for run_id, open_call in _uncertain(past):
            call = open_call.call
            return Blocked(
                cause=Block.OUTCOME_UNKNOWN,
                reason=(
                    f"nobody knows whether the call {call.id} of {call.name} ({open_call.effect}) "
                    f"had its effect before run {run_id} was interrupted"
                ),
                remedy=f"Find out, and say what came of it: POST /api/runs/{run_id}/tools/{call.id}/resolve",
            )
    return None


def _anew(run: Run, created: e.RunCreated) -> CreateRun:
    return CreateRun(
        tenant=created.tenant,
        kind=created.kind,
        agent=created.agent,
        input=created.input,
        parameters=created.parameters,
        session_id=created.session_id,
        continued_from_run_id=run.id,
        chain_root_run_id=run.chain_root,
        streaming=created.streaming,
        overrides=created.overrides,
        origin=created.origin,
        decisions=created.decisions,
    )
