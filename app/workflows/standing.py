"""Where a live workflow stands, as its nodes see it."""

from collections.abc import Mapping
from typing import NamedTuple

from app.supervision.live_run import LiveRun
from domain.events.workflow import Progress
from domain.workflow.decide import workflow_of
from domain.workflow.definition import WorkflowDefinition, WorkflowNode
from domain.workflow.state import WorkflowRun
from domain.workflow.texts import text_for

COMPANY_S = 0.05
"""What is recorded together with what follows from it waits for no longer than this. A barrier ends it."""


class Standing(NamedTuple):
    """What the nodes of the super-step under way may know."""

    given: str
    workflow: WorkflowRun

    @property
    def definition(self) -> WorkflowDefinition:
        return self.workflow.definition

    @property
    def progress(self) -> Progress:
        return self.workflow.progress

    @property
    def outputs(self) -> Mapping[str, str]:
        """The last output of every node that has one."""
        return {output.node: output.text for output in self.progress.outputs}

    @property
    def inputs(self) -> Mapping[str, str]:
        """The outputs of the super-step before."""
        outputs = self.progress.outputs
        return {one.node: one.text for one in outputs if one.step == outputs[-1].step}

    def text_for(self, node: WorkflowNode) -> str:
        return text_for(self.definition, node, self.given, self.progress.outputs)

    def company_of(self, node: WorkflowNode) -> float:
        """How long the node's output may wait to be recorded: the last one of a super-step goes down with
        the super-step's end, so that there is no moment at which it is finished and would be run again."""
        step = self.workflow.open_step
        return COMPANY_S if step is not None and step.left == (node.name,) else 0.0

    def attempts_of(self, node: WorkflowNode) -> int:
        """How often the node was invoked in this super-step."""
        step = self.workflow.open_step
        return step.attempts.get(node.name, 0) if step else 0


def standing_of(live: LiveRun) -> Standing:
    return Standing(live.run.given, workflow_of(live.run))
