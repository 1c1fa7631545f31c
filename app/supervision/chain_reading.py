"""Reads what the runs before a run have spent, once, when the run starts (BUDGET-7)."""

from typing import cast

from app.store.event_log import EventLog
from app.supervision.runs import Runs
from domain.budget import Spent
from domain.codec import UnknownTopic, UnreadableEvent
from domain.errors import NotFound
from domain.events import Recorded, RunCreated, RunEvent
from domain.failure import ErrorClass, RunError
from domain.ids import RunId, run_stream
from domain.run import Run
from domain.spent import LONGEST_CHAIN, History, children_of, spent_by

_UNREADABLE = (NotFound, UnknownTopic, UnreadableEvent)


async def spent_before(log: EventLog, run: Run) -> Spent | RunError:
    """What the run starts from. An error, rather than zero, where nobody can say. Raise StoreUnavailable."""
    wanted, chain = _before(run.created), list[History]()
    if wanted is None:
        return Spent()
    try:
        while wanted is not None:
            if len(chain) == LONGEST_CHAIN - 1:
                return _too_long()
            history = await Runs(log).history(wanted)
            chain.append(history)
            wanted = _before(history[0].event)
        return spent_by(chain, await _below(log, chain))
    except _UNREADABLE as error:
        return _unreadable(wanted, error)


async def _below(log: EventLog, histories: list[History]) -> list[History]:
    """The streams of all runs below these, level by level."""
    found: list[History] = []
    level = [child for history in histories for child in children_of(history)]
    while level:
        streams: dict[RunId, list[Recorded[RunEvent]]] = {run_id: [] for run_id in level}
        for one in await log.read_streams({run_stream(run_id): 0 for run_id in level}):
            streams[RunId(one.stream_id)].append(cast(Recorded[RunEvent], one))
        found += streams.values()
        level = [child for history in streams.values() for child in children_of(history)]
    return found


def _before(event: object) -> RunId | None:
    return event.continued_from_run_id if isinstance(event, RunCreated) else None


def _too_long() -> RunError:
    return RunError(
        message=f"the run continues a chain of {LONGEST_CHAIN} runs or more, and no chain may be longer",
        type="run_chain_too_long",
        error_class=ErrorClass.QUOTA_EXCEEDED,
    )


def _unreadable(wanted: RunId | None, error: Exception) -> RunError:
    where = f"run {wanted}" if wanted else "the runs below them"
    return RunError(
        message=f"what the runs before this one have spent cannot be read, at {where}: {error}",
        type="run_chain_unreadable",
        error_class=ErrorClass.INFRASTRUCTURE,
    )
