"""The runs of a workflow that go on from one another, as the log has them."""

from app.supervision.runs import Runs
from domain.continuation import PastRun
from domain.errors import Conflict
from domain.events import RunCreated
from domain.ids import RunId
from domain.spent import LONGEST_CHAIN


class ChainTooLong(Conflict):
    """So many runs go on from one another that nobody reads them any more. Run the workflow anew."""

    code = "chain_too_long"

    def __init__(self, run_id: RunId) -> None:
        super().__init__(f"run {run_id} goes on from more than {LONGEST_CHAIN - 1} runs before it")


async def chain_of(runs: Runs, run_id: RunId, tenant: str | None = None) -> list[PastRun]:
    """The run and all that it goes on from, the oldest first. Raise RunNotFound or ChainTooLong."""
    chain: list[PastRun] = []
    wanted: RunId | None = run_id
    while wanted is not None:
        if len(chain) == LONGEST_CHAIN:
            raise ChainTooLong(run_id)
        past = await past_run(runs, wanted, tenant)
        chain.insert(0, past)
        created = past.events[0]
        wanted = created.continued_from_run_id if isinstance(created, RunCreated) else None
    return chain


async def past_run(runs: Runs, run_id: RunId, tenant: str | None = None) -> PastRun:
    """Raise RunNotFound."""
    events = tuple(recorded.event for recorded in await runs.history(run_id, tenant))
    return PastRun(run_id=run_id, events=events)
