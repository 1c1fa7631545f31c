"""What somebody found out about a tool call whose outcome was unknown, and what becomes possible by it."""

from app.supervision.continuer import Continuer
from app.supervision.runs import Runs
from domain.commands import ResolveTool
from domain.ids import RunId


class Resolutions:
    """The word of whoever looked outside goes on record, and a run that was blocked by the doubt goes on."""

    def __init__(self, runs: Runs, continuer: Continuer) -> None:
        self._runs = runs
        self._continuer = continuer

    async def resolve(self, tenant: str, run_id: RunId, resolution: ResolveTool) -> None:
        """Record it, and have the run continued if nothing else stands against that.

        The same once more changes nothing, so it is also how to have a continuation tried again that could
        not be had: StoreUnavailable and Draining come after the resolution was recorded. Raise RunNotFound,
        RunNotEnded, ToolCallNotFound, OutcomeKnown or ResolvedOtherwise.
        """
        run = await self._runs.load(run_id, tenant)
        await self._runs.execute(run_id, resolution)
        root = run.created.root_run_id if run.created else None
        await self._continuer.consider(root or run_id)
