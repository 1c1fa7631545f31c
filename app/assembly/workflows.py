"""What workflows are run with."""

from collections.abc import Callable

import asyncpg

from app.definitions.lookup import AgentLookup
from app.functions.runner import FunctionRunner
from app.metrics import Metrics
from app.quotas.quotas import Quotas
from app.settings.whole import Settings
from app.supervision.cancels import Cancels
from app.supervision.child_runs import RunsChildren
from app.supervision.drain import Drain
from app.supervision.roster import Roster
from app.supervision.runs import Runs
from app.supervision.workbench import Workbench
from app.workflow_catalog import WorkflowCatalog
from app.workflows.bench import WorkflowBench
from app.workflows.definitions import WorkflowDefinitions
from app.workflows.opening import WorkflowOpener
from app.workflows.recovery import WorkflowRecovery
from app.workflows.service import WorkflowService
from app.workflows.slots import Slots
from domain.ids import RunId


def workflows_of(
    settings: Settings,
    catalog: WorkflowCatalog,
    agents: AgentLookup,
    pool: asyncpg.Pool,
    bench: Workbench,
    children: RunsChildren,
    roster: Roster,
    runs: Runs,
    drain: Drain,
    cancels: Cancels,
    quotas: Quotas,
    refuse: Callable[[RunId], None],
    metrics: Metrics,
) -> tuple[WorkflowService, WorkflowRecovery]:
    """The workflows of a host, and what goes on from their runs when those lose their workers."""
    workflow_bench = WorkflowBench(
        host=bench,
        catalog=catalog,
        functions=FunctionRunner(settings.cancellation),
        children=children,
        slots=Slots(settings.workflows.max_concurrent_runs, metrics),
        settings=settings.workflows,
    )
    opener = WorkflowOpener(workflow_bench, roster, refuse)
    definitions = WorkflowDefinitions(catalog, agents, bench.log, pool)
    service = WorkflowService(definitions, opener, runs, drain, quotas, settings.workflows)
    recovery = WorkflowRecovery(bench.log, runs, opener, cancels, settings.workflows, metrics)
    return service, recovery
