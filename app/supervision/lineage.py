"""The runs that go on from one another, and what they leave to the next."""

from app.supervision.runs import Runs
from domain.continuation import PastRun
from domain.events import RunCreated
from domain.ids import RunId
from domain.ledger import Ledger, inherited

LONGEST_CHAIN = 128


async def chain_of(runs: Runs, run_id: RunId) -> list[PastRun]:
    """The run and those that it goes on from, the oldest first. Raise RunNotFound."""
    chain: list[PastRun] = []
    wanted: RunId | None = run_id
    while wanted is not None and len(chain) < LONGEST_CHAIN:
        events = tuple(recorded.event for recorded in await runs.history(wanted))
        chain.insert(0, PastRun(run_id=wanted, events=events))
        wanted = events[0].continued_from_run_id if isinstance(events[0], RunCreated) else None
    return chain


async def inheritance_of(runs: Runs, created: RunCreated) -> Ledger:
    """What a run finds done already that goes on after a person's decision (TOOL-2)."""
    before = created.continued_from_run_id
    if before is None or not created.decisions:
        return Ledger()
    return inherited((past.run_id, past.events) for past in await chain_of(runs, before))
