"""What a run asks before it spends anything, and what its tree has spent so far (BUDGET)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Protocol
from weakref import WeakValueDictionary

from app.clock import elapsed_s
from app.db.errors import StoreUnavailable
from app.metrics import Metrics
from app.quotas.watch import QuotaBook, QuotaWatch
from app.settings import AgentGraphSettings
from app.store.errors import Fenced
from app.store.event_log import EventLog
from app.supervision.chain_reading import spent_before
from app.supervision.live_run import LiveRun
from app.tools.context import ToolUsage
from domain import budget as b
from domain.commands import ReportUsage
from domain.errors import Conflict
from domain.events import Event
from domain.failure import RunError
from domain.ids import RunId
from domain.run import Run

log = logging.getLogger(__name__)


class Refuses(Protocol):
    """Something that may be used up. What is refused once stays refused for the run."""

    @property
    def is_spent(self) -> bool:
        """Whether `refusal_of_work` would refuse."""
        ...

    def refusal_of_work(self) -> RunError | None:
        """Why no model turn and no tool call may start any more."""
        ...

    def refusal_of_node(self) -> RunError | None:
        """Why no function node may start any more."""
        ...


class Tree:
    """The budget of one tree of runs, in the memory of the host that runs it."""

    def __init__(self, limits: b.Limits, metrics: Metrics) -> None:
        self.budget = b.Budget(limits=limits)
        self._metrics = metrics
        self._began_at: float | None = None
        self._moved: asyncio.Event | None = None
        """Set by the next step that is settled, where somebody waits for it."""

    def begin(self, spent: b.Spent) -> None:
        """The clock of the tree runs from here. `spent`: what the runs before its root have used."""
        self._began_at = elapsed_s()
        self.budget = b.Budget(limits=self.budget.limits, spent=spent)

    @property
    def has_begun(self) -> bool:
        return self._began_at is not None

    @property
    def elapsed_s(self) -> float:
        return 0.0 if self._began_at is None else elapsed_s() - self._began_at

    @property
    def is_spent(self) -> bool:
        """Whether no further work of its runs may start."""
        return b.refusal_of_work(self.budget, self.elapsed_s) is not None

    def refusal_of_work(self) -> RunError | None:
        return self._counted(b.refusal_of_work(self.budget, self.elapsed_s))

    def refusal_of_node(self) -> RunError | None:
        return self._counted(b.refusal_of_node(self.budget, self.elapsed_s))

    def start_child(self, depth: int) -> RunError | None:
        """Count a child that is about to start, or say why it may not (BUDGET-2)."""
        refusal = self._counted(b.refusal_of_child(self.budget, depth))
        if refusal is None:
            self.budget = b.with_child(self.budget)
        return refusal

    def charge(self, charge: b.Charge) -> None:
        self.budget = b.charged(self.budget, charge)

    def reserve(self, run_id: RunId, estimate: b.Charge) -> None:
        self.budget = b.reserve(self.budget, run_id, estimate)

    def settle(self, run_id: RunId) -> None:
        self.budget = b.settle(self.budget, run_id)
        if self._moved is not None:
            self._moved.set()
            self._moved = None

    async def moved(self) -> None:
        """Return when a step has been settled."""
        if self._moved is None:
            self._moved = asyncio.Event()
        with self._metrics.budget_waiting.track_inprogress():
            await self._moved.wait()

    def _counted(self, refusal: b.Refusal | None) -> RunError | None:
        if refusal is None:
            return None
        self._metrics.budget_refusals.labels(refusal.limit).inc()
        return refusal.error


class Spending:
    """One run's side of it. Whatever the run records is charged to the tree at that moment (BUDGET-8)."""

    def __init__(
        self, live: LiveRun, tree: Tree, log: EventLog, currency: str, quotas: QuotaWatch | None
    ) -> None:
        self._live = live
        self._log = log
        self._currency = currency
        self._quotas = quotas
        self._refusing: tuple[Refuses, ...] = (tree,) if quotas is None else (tree, quotas)
        self.tree = tree
        live.on_fact = self._note

    async def begin(self) -> RunError | None:
        """Start the clock of a new tree, from what the runs before this one have spent (BUDGET-7).

        Return what ends the run, if nobody can say what that is. Raise StoreUnavailable.
        """
        if self._quotas is not None:
            await self._quotas.begin()
        if self.tree.has_begun:
            return None
        spent = await spent_before(self._log, self._live.run)
        if isinstance(spent, RunError):
            return spent
        self.tree.begin(spent)
        return None

    @property
    def is_spent(self) -> bool:
        """Whether no model turn and no tool call of the run may start any more."""
        return any(one.is_spent for one in self._refusing)

    def refusal_before_model(self) -> RunError | None:
        """Checked between two model turns (BUDGET-2)."""
        return next((refusal for one in self._refusing if (refusal := one.refusal_of_work())), None)

    def refusal_before_tool(self) -> RunError | None:
        """Checked before anything else of the call (BUDGET-4)."""
        return self.refusal_before_model()

    def refusal_before_node(self, *, exempt: bool = False) -> RunError | None:
        """Checked when a function node would start, each attempt of it too (BUDGET-5)."""
        if exempt:
            return None
        return next((refusal for one in self._refusing if (refusal := one.refusal_of_node())), None)

    async def during(
        self, estimate: b.Charge, perform: Callable[[], Awaitable[RunError | None]]
    ) -> RunError | None:
        """Perform a step that spends about so much, once there is room for it. Return what ends the run.

        It waits while the steps in flight may use up what is left, and may not either. They do not wait for
        it: a run that waits for a child is at no step.
        """
        while True:
            if refusal := self.refusal_before_model():
                return refusal
            if b.has_room(self.tree.budget):
                break
            await self.tree.moved()
        self.tree.reserve(self._live.id, estimate)
        try:
            return await perform()
        finally:
            self.tree.settle(self._live.id)

    def reporter(self, cause: str) -> Callable[[ToolUsage], None]:
        """What a call or a node is given to report with, from whichever thread it runs in (BUDGET-3)."""
        return partial(self._report_from_anywhere, asyncio.get_running_loop(), cause)

    def report(self, cause: str, usage: ToolUsage) -> None:
        """It counts at once, if budgets can count it."""
        counted = usage.amount is not None and usage.currency == self._currency
        report = ReportUsage(
            cause=cause, kind=usage.kind, amount=usage.amount, currency=usage.currency, counted=counted
        )
        try:
            self._live.execute(report)
        except (Conflict, Fenced, StoreUnavailable) as error:
            # A body that was left behind may speak up when its run is closed; a closed run stays as it is.
            log.warning("usage.not_recorded", extra={"run_id": str(self._live.id), "error": str(error)})

    def _report_from_anywhere(self, loop: asyncio.AbstractEventLoop, cause: str, usage: ToolUsage) -> None:
        if _running_loop() is loop:
            self.report(cause, usage)
        else:
            # In order: what a body has reported is heard before what it returns.
            with suppress(RuntimeError):  # the loop is closed, and nobody counts any more
                loop.call_soon_threadsafe(self.report, cause, usage)

    def _note(self, event: Event) -> None:
        charge = b.charge_of(event)
        if charge is b.NOTHING:  # most events are pieces of text
            return
        self.tree.charge(charge)
        if self._quotas is not None:
            self._quotas.charge(self._live.run.version, charge)


class Trees:
    """The trees whose runs are on this host. One goes when the last of its runs has ended."""

    def __init__(
        self,
        log: EventLog,
        settings: AgentGraphSettings,
        quotas: QuotaBook,
        currency: str,
        metrics: Metrics,
    ) -> None:
        self._log = log
        self.quotas = quotas
        self._limits = b.limits_of(
            depth=settings.max_depth,
            runs=settings.max_total_runs,
            tokens=settings.max_total_tokens,
            cost=settings.max_total_cost,
            duration_s=settings.max_duration,
        )
        self._currency = currency
        self._metrics = metrics
        self._trees: WeakValueDictionary[RunId, Tree] = WeakValueDictionary()

    def tree_of(self, run: Run) -> Tree:
        """The tree that the run belongs to; a new one for a root."""
        root = (run.created.root_run_id if run.created else None) or run.id
        tree = self._trees.get(root)
        if tree is None:
            tree = self._trees[root] = Tree(self._limits, self._metrics)
        return tree

    def spending_of(self, live: LiveRun) -> Spending:
        """For the actor of the run: it keeps the tree for as long as it has this."""
        agent = live.run.created.agent if live.run.created else ""
        watch = self.quotas.watch(live.id, live.tenant, agent)
        return Spending(live, self.tree_of(live.run), self._log, self._currency, watch)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
