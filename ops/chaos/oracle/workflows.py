"""What must be true of a workflow whose host was killed, whatever the place (WF-1, WF-2, WF-3)."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, cast
from uuid import UUID

import asyncpg
import msgspec

from app.store.mapper import EventMapper
from domain.events import RunCompleted, RunEnd, RunEvent, RunFailed
from domain.events.workflow import NodeCompleted, NodeInvoked, SuperStepCompleted


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one workflow, the oldest first, as their streams have them."""

    runs: tuple[tuple[RunEvent, ...], ...]

    @property
    def events(self) -> Iterator[RunEvent]:
        return (event for run in self.runs for event in run)

    @property
    def outcomes(self) -> list[str]:
        return [_told(next((one for one in run if isinstance(one, RunEnd)), None)) for run in self.runs]

    @property
    def invoked(self) -> Counter[str]:
        return Counter(event.node for event in self.events if isinstance(event, NodeInvoked))


async def chain_of(pool: asyncpg.Pool, run_ids: Sequence[str]) -> Chain:
    mapper = EventMapper()
    runs = []
    for run_id in run_ids:
        rows = await pool.fetch(
            "SELECT topic, state FROM stored_events WHERE originator_id = $1 ORDER BY originator_version",
            UUID(run_id),
        )
        runs.append(tuple(cast(RunEvent, mapper.open(row["topic"], row["state"])) for row in rows))
    return Chain(runs=tuple(runs))


def wrong_with(chain: Chain, bodies: Sequence[dict[str, Any]]) -> Iterator[str]:
    """Each promise that was broken, in words."""
    if not any(isinstance(event, RunCompleted) for event in chain.runs[-1]):
        yield f"it came to no end: {' > '.join(chain.outcomes)}"
    yield from _run_again(chain)
    completed = Counter(event.output.node for event in chain.events if isinstance(event, NodeCompleted))
    for node in ("find", "weigh", "publish"):
        if completed[node] != 1:
            yield f"{node} has {completed[node]} outputs on record"
    if chain.invoked["publish"] and chain.invoked["approve"] < 1:
        yield "it was published without a question"
    yield from _wrong_bodies(bodies)


def _run_again(chain: Chain) -> Iterator[str]:
    """After a crash exactly the finished super-steps are not run again (WF-2)."""
    finished = 0
    for event in chain.events:
        match event:
            case SuperStepCompleted(step=step):
                finished = max(finished, step)
            case NodeInvoked(node=node, step=step) if step <= finished:
                yield f"{node} of super-step {step} is run again although {finished} are finished"
            case _:
                pass


def _wrong_bodies(bodies: Sequence[dict[str, Any]]) -> Iterator[str]:
    """A body that began twice did so under one key; what follows the pair has seen both of it (WF-1)."""
    for node in ("weigh", "count", "publish"):
        keys = {body["call_key"] for body in bodies if body["node"] == node}
        if len(keys) != 1:
            yield f"{node} was called under {len(keys)} keys"
        begun = sum(body["node"] == node for body in bodies)
        if begun > 2:
            yield f"{node} began {begun} times for one kill"


def _told(end: RunEvent | None) -> str:
    return "open" if end is None else end.error_type if isinstance(end, RunFailed) else type(end).__name__
