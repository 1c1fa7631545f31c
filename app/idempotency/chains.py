"""The runs that one submission came to: the one that it opened, and those that went on in its place."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.supervision.runs import Runs
from domain.events import Recorded, RunEnd, RunEvent
from domain.evolve import fold
from domain.ids import RunId
from domain.run import Run


@dataclass(frozen=True)
class Chain:
    """Oldest first, and never empty. `last` has the events of the last one, up to its end.

    What is said of a run after its end has no part in the answer, which is the same before and after.
    """

    runs: Sequence[Run]
    last: Sequence[Recorded[RunEvent]]


async def chain_from(runs: Runs, first: RunId, *, goes_past_people: bool = False) -> Chain:
    """Read from the runs' own streams, so it is never behind. Raise RunNotFound.

    A run that waits for a person is the last one, unless the chain `goes_past_people`.
    """
    chain: list[Run] = []
    next_id: RunId | None = first
    while next_id is not None:
        history = await runs.history(next_id)
        chain.append(fold(next_id, (recorded.event for recorded in history)))
        stops = chain[-1].status.awaits and not goes_past_people
        next_id = None if stops else chain[-1].continued_by
    return Chain(chain, _up_to_its_end(history))


def _up_to_its_end(history: Sequence[Recorded[RunEvent]]) -> Sequence[Recorded[RunEvent]]:
    for place, recorded in enumerate(history, 1):
        if isinstance(recorded.event, RunEnd):
            return history[:place]
    return history
