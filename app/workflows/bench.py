"""What every workflow's actor of a host works with. Built once, by the composition root."""

from dataclasses import dataclass

from app.functions.runner import FunctionRunner
from app.settings import WorkflowSettings
from app.supervision.child_runs import RunsChildren
from app.supervision.workbench import Workbench
from app.workflow_catalog import WorkflowCatalog
from app.workflows.slots import Slots


@dataclass(frozen=True, kw_only=True)
class WorkflowBench:
    """Shared by all workflows' actors; holds no state of any run."""

    host: Workbench
    catalog: WorkflowCatalog
    functions: FunctionRunner
    children: RunsChildren
    slots: Slots
    settings: WorkflowSettings
