"""Following one run: who may see it, where a watcher stands in it, and its events up to its end."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from app.http.errors import BadQuery, FieldError
from app.store.event_log import EventLog
from app.store.feed import Frame
from app.supervision.runs import RunNotFound
from domain.events import AfterEnd, RunCreated, RunEnd
from domain.ids import RunId, run_stream


async def creation_of(log: EventLog, tenant: str, run_id: RunId) -> RunCreated:
    """How the run began. Raise RunNotFound for what is no run of this tenant (HTTP-2)."""
    first = await log.read_stream(run_stream(run_id), limit=1)
    if not first or first[0].tenant != tenant or not isinstance(first[0].event, RunCreated):
        raise RunNotFound(run_id)
    return first[0].event


async def is_over(log: EventLog, run_id: RunId) -> bool:
    """Whether the run has ended, or is none."""
    last = await log.read_last(run_stream(run_id))
    return last is None or isinstance(last.event, RunEnd | AfterEnd)


async def ended_by(log: EventLog, run_id: RunId, after: int) -> bool:
    """Whether who has seen event `after` has seen the run's end. Raise BadQuery for a place not there yet."""
    if after == 0:
        return False
    seen = await log.read_stream(run_stream(run_id), after=after - 1, limit=1)
    if not seen:
        raise BadQuery(f"The run has no event {after}.", FieldError(field="after", message="not there yet"))
    return isinstance(seen[0].event, RunEnd | AfterEnd)


async def each_until_end(log: EventLog, run_id: RunId, see: Callable[[Frame], object]) -> None:
    """Wait for the run's end, and show everything up to there."""
    async with aclosing(until_end(log, run_id, 0)) as batches:
        async for batch in batches:
            for frame in batch:
                see(frame)


async def until_end(log: EventLog, run_id: RunId, after: int) -> AsyncGenerator[Sequence[Frame], None]:
    """What follows event `after` as it comes, unrecorded text too. The batch with the end is the last."""
    async with aclosing(log.follow_live(run_stream(run_id), after)) as batches:
        async for batch in batches:
            yield batch
            if any(isinstance(frame.event, RunEnd) for frame in batch):
                return
