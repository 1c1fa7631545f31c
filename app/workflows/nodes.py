"""Has the nodes of a super-step come to something: invoked on record, done, and their outcome on record."""

import asyncio
from collections.abc import Callable, Sequence
from typing import assert_never

from app.supervision.live_run import LiveRun
from app.supervision.spending import Spending
from app.workflows.agent_node import AgentNodes
from app.workflows.bench import WorkflowBench
from app.workflows.function_node import FunctionNodes
from app.workflows.standing import standing_of
from domain.commands.workflow import AskPerson, InvokeNode
from domain.ledger import call_key
from domain.workflow.definition import NodeKind, WorkflowNode


class Nodes:
    """The nodes of one run. `stopping` says whether the run is being ended on purpose."""

    def __init__(
        self, live: LiveRun, bench: WorkflowBench, spending: Spending, stopping: Callable[[], bool]
    ) -> None:
        self._live = live
        self._agents = AgentNodes(live, bench)
        self._functions = FunctionNodes(live, bench, spending, stopping)

    async def perform(self, nodes: Sequence[WorkflowNode]) -> None:
        """All of them at once. When this returns, each has an output, a failure or a question on record.

        One that fails leaves the others alone: what they do may be half done.
        """
        for node in nodes:
            self._invoke(node)
        await self._live.flush()  # NodeInvoked is committed before anything is done (EVENT-2)
        if len(nodes) == 1:
            await self._perform(nodes[0])
            return
        try:
            async with asyncio.TaskGroup() as group:
                for node in nodes:
                    group.create_task(self._perform(node))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    def _invoke(self, node: WorkflowNode) -> None:
        self._live.execute(InvokeNode(node=node.name, call_key=self._call_key(node)))

    def _call_key(self, node: WorkflowNode) -> str:
        """The same for a node that is repeated after a crash: nothing of it depends on the run (TOOL-1)."""
        at = standing_of(self._live)
        step = at.progress.step + 1
        return call_key(self._live.run.chain_root, f"workflow node {node.name}", at.text_for(node), step)

    async def _perform(self, node: WorkflowNode) -> None:
        match node.kind:
            case NodeKind.AGENT:
                await self._agents.perform(node)
            case NodeKind.FUNCTION:
                await self._functions.perform(node)
            case NodeKind.PERSON:
                at = standing_of(self._live)
                ask = AskPerson(node=node.name, prompt=at.text_for(node))
                self._live.execute(ask, within_s=at.company_of(node))
            case kind:
                assert_never(kind)
