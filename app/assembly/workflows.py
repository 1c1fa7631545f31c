"""What workflows are run with."""

from app.assembly.ground import Ground
from app.assembly.supervision import Core
from app.functions.runner import FunctionRunner
from app.quotas.quotas import Quotas
from app.workflows.bench import WorkflowBench
from app.workflows.definitions import WorkflowDefinitions
from app.workflows.opening import WorkflowOpener
from app.workflows.recovery import WorkflowRecovery
from app.workflows.service import WorkflowService
from app.workflows.slots import Slots


def workflows_of(ground: Ground, core: Core, quotas: Quotas) -> tuple[WorkflowService, WorkflowRecovery]:
    """The workflows of a host, and what goes on from their runs when those lose their workers."""
    settings, log = ground.settings, ground.log
    bench = WorkflowBench(
        host=core.bench,
        catalog=ground.definitions.workflows,
        functions=FunctionRunner(settings.cancellation),
        children=core.children,
        slots=Slots(settings.workflows.max_concurrent_runs, ground.metrics),
        settings=settings.workflows,
    )
    opener = WorkflowOpener(bench, core.roster, core.opener.refuse)
    definitions = WorkflowDefinitions(ground.definitions.workflows, ground.agents, log, ground.pool)
    service = WorkflowService(
        definitions, opener, core.runs, core.cancels, core.drain, quotas, settings.workflows
    )
    recovery = WorkflowRecovery(log, core.runs, opener, core.cancels, settings.workflows, ground.metrics)
    # Before the continuer, which says of what is left over why nothing goes on from it.
    core.orphans.on_orphaned.insert(0, recovery.consider)
    return service, recovery
