"""A node that is an agent: a child run, and its end as the node's outcome."""

from time import monotonic

import msgspec

from app.registry import AgentNotFound, UnusableAgent
from app.supervision.child_runs import ChildAsk, ChildFinished, ChildOutcome, ChildRefused
from app.supervision.live_run import LiveRun
from app.workflows.bench import WorkflowBench
from app.workflows.outcomes import failed
from app.workflows.standing import standing_of
from domain.commands.workflow import RecordNodeOutput
from domain.failure import ErrorClass, RunError
from domain.messages import Message, SystemMessage, UserMessage
from domain.parameters import BadParameter
from domain.workflow.definition import WorkflowNode
from domain.workflow.texts import rules_for


class AgentNodes:
    """The agents of one workflow's run."""

    def __init__(self, live: LiveRun, bench: WorkflowBench) -> None:
        self._live = live
        self._bench = bench

    async def perform(self, node: WorkflowNode) -> None:
        """Cancelled, the child ends first (CANCEL-3), and an answer that it had by then is recorded."""
        began = monotonic()
        try:
            outcome = await self._bench.children.run(self._live, self._ask(node))
        except ChildFinished as finished:
            self._record(node, finished.outcome, began)
            raise
        except ChildRefused as refused:
            self._fail(node, refused.error, began, "refused")
        except (AgentNotFound, UnusableAgent, BadParameter) as error:
            told = RunError(message=str(error), type=error.code, error_class=ErrorClass.INVALID)
            self._fail(node, told, began)
        else:
            self._record(node, outcome, began)

    def _ask(self, node: WorkflowNode) -> ChildAsk:
        at = standing_of(self._live)
        rules = rules_for(at.definition, node)
        before: tuple[Message, ...] = () if rules is None else (SystemMessage(content=rules),)
        return ChildAsk(
            agent=node.agent or "",
            messages=(*before, UserMessage(content=at.text_for(node))),
            parameters=node.parameters,
            cause=node.name,
            in_place_of=at.workflow.interrupted.get(node.name),
        )

    def _record(self, node: WorkflowNode, outcome: ChildOutcome, began: float) -> None:
        if outcome.error is not None:
            told = f"agent {node.agent} ended without an answer: {outcome.error.message}"
            error = msgspec.structs.replace(outcome.error, message=told)
            self._fail(node, error, began)
            return
        took_ms = round((monotonic() - began) * 1000)
        output = RecordNodeOutput(node=node.name, text=outcome.answer, duration_ms=took_ms)
        self._live.execute(output, within_s=standing_of(self._live).company_of(node))
        self._count("completed")

    def _fail(self, node: WorkflowNode, error: RunError, began: float, counted: str = "failed") -> None:
        self._live.execute(failed(node, error, began))
        self._count(counted)

    def _count(self, outcome: str) -> None:
        self._bench.host.metrics.workflow_nodes.labels("agent", outcome).inc()
