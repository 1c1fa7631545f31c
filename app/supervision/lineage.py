"""The runs that go on from one another, and what they leave to the next."""

import msgspec

from app.supervision.runs import Runs
from domain.continuation import PastRun, open_children, with_answers
from domain.events import RunCreated
from domain.evolve import fold
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


async def family_of(runs: Runs, run_id: RunId) -> list[PastRun]:
    """The same, each with the runs that its open calls to agents were. Raise RunNotFound."""
    return [await _with_children(runs, past) for past in await chain_of(runs, run_id)]


async def _with_children(runs: Runs, past: PastRun) -> PastRun:
    run = fold(past.run_id, past.events)
    children = {
        call_id: tuple(await family_of(runs, child))
        for call_id, child in open_children(run, past.events).items()
    }
    return msgspec.structs.replace(past, children=children)


async def inheritance_of(runs: Runs, created: RunCreated) -> Ledger:
    """What a run finds done already that goes on after a person's decision (TOOL-2)."""
    before = created.continued_from_run_id
    if before is None or not created.decisions:
        return Ledger()
    return inherited((past.run_id, past.events) for past in await chain_of(runs, before))


async def left_by(runs: Runs, run_id: RunId) -> tuple[RunId, Ledger]:
    """The root of an interrupted run's chain, and what a run finds done already that goes on from it."""
    chain = await family_of(runs, run_id)
    root = fold(chain[-1].run_id, chain[-1].events).chain_root
    return root, inherited((past.run_id, with_answers(past)) for past in chain)
