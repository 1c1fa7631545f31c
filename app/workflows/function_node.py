"""A node that calls a registered function: tried again where that may help, and stopped with its run."""

import asyncio
import logging
from collections.abc import Callable
from time import monotonic

from app.db.errors import StoreUnavailable
from app.faults import fault_point
from app.functions.context import WorkflowContext
from app.functions.function import WorkflowFunction
from app.functions.runner import FunctionFinished, FunctionLeftBehind, Returned
from app.store.errors import Fenced
from app.supervision.live_run import LiveRun
from app.supervision.ownership import make_sure
from app.supervision.spending import Spending
from app.tools.body import words_of
from app.tools.outcome import storable
from app.workflows.bench import WorkflowBench
from app.workflows.outcomes import failed
from app.workflows.standing import standing_of
from domain.commands.workflow import InvokeNode, RecordNodeOutput
from domain.failure import ErrorClass, RunError
from domain.workflow.definition import WorkflowNode

log = logging.getLogger(__name__)


class FunctionNodes:
    """The functions of one workflow's run. All attempts of a node are one super-step (WF-5)."""

    def __init__(
        self, live: LiveRun, bench: WorkflowBench, spending: Spending, stopping: Callable[[], bool]
    ) -> None:
        self._live = live
        self._bench = bench
        self._spending = spending
        self._stopping = stopping

    async def perform(self, node: WorkflowNode) -> None:
        """What the function returns, or why it did not: on record when this returns."""
        function = self._bench.catalog.function(node.function or "")
        if function is None:
            self._live.execute(failed(node, _not_here(node), monotonic()))
            return
        while (delay_s := await self._attempt(node, function)) is not None:
            await asyncio.sleep(delay_s)
            self._invoke_again(node)
            await self._live.flush()

    async def _attempt(self, node: WorkflowNode, function: WorkflowFunction) -> float | None:
        """One call. Return how long to wait before the next one; None where there is none."""
        began = monotonic()
        exempt = function.starts_when_budget_is_spent
        if refusal := self._spending.refusal_before_node(exempt=exempt):
            # Cost and time only grow within a run: another attempt would be refused too (BUDGET-5).
            self._count("refused")
            self._live.execute(failed(node, refusal, began))
            return None
        await make_sure(self._live, self._bench.host)
        try:
            returned = await self._call(node, function, began)
        except (Fenced, StoreUnavailable):
            raise  # the run is not this host's any more, or cannot be written: no matter of the function's
        except Exception as error:  # noqa: BLE001 - a crash of the function is the node's outcome
            return self._note_failure(node, function, error, began)
        self._record(node, returned, began)
        return None

    async def _call(self, node: WorkflowNode, function: WorkflowFunction, began: float) -> Returned:
        text = standing_of(self._live).text_for(node)
        fault_point("node.body.before")
        try:
            returned = await self._bench.functions.call(function, text, self._context(node))
        except asyncio.CancelledError as cancelled:
            self._unwound(node, cancelled, began)
            # Bare: the timeouts of Python 3.11 take a subclass of it for somebody else's error.
            raise asyncio.CancelledError from cancelled
        fault_point("node.body.after")
        return returned

    def _unwound(self, node: WorkflowNode, cancelled: asyncio.CancelledError, began: float) -> None:
        """What the node came to when it was cancelled. A host that stops leaves it without an outcome."""
        match cancelled:
            case FunctionFinished(returned=returned):
                self._record(node, returned, began)
            case FunctionLeftBehind() if self._stopping():
                self._live.execute(failed(node, _outcome_unknown(str(cancelled)), began))
            case _ if self._stopping():
                self._live.execute(failed(node, _CANCELLED, began))
            case _:
                pass

    def _note_failure(
        self, node: WorkflowNode, function: WorkflowFunction, error: Exception, began: float
    ) -> float | None:
        attempt = standing_of(self._live).attempts_of(node)
        again = attempt < function.attempts and isinstance(error, function.transient)
        delay_s = function.delay_after(attempt) if again else None
        log.warning(
            "node failed",
            extra={"run_id": str(self._live.id), "node": node.name, "attempt": attempt},
            exc_info=error,
        )
        self._count("retried" if again else "failed")
        self._live.execute(failed(node, _raised(function, error), began, delay_s))
        return delay_s

    def _record(self, node: WorkflowNode, returned: Returned, began: float) -> None:
        self._count("completed")
        self._live.execute(
            RecordNodeOutput(
                node=node.name,
                text=returned.text,
                handoff_to=returned.handoff_to,
                done=returned.done,
                duration_ms=round((monotonic() - began) * 1000),
            ),
            within_s=standing_of(self._live).company_of(node),
        )

    def _invoke_again(self, node: WorkflowNode) -> None:
        self._live.execute(InvokeNode(node=node.name, call_key=self._call_key(node)))

    def _call_key(self, node: WorkflowNode) -> str:
        step = standing_of(self._live).workflow.open_step
        return step.call_keys.get(node.name, "") if step else ""

    def _context(self, node: WorkflowNode) -> WorkflowContext:
        at, created = standing_of(self._live), self._live.run.created
        return WorkflowContext(
            tenant=self._live.tenant,
            run_id=self._live.id,
            session_id=created.session_id if created else None,
            workflow=at.definition.name,
            node=node.name,
            attempt=at.attempts_of(node),
            call_key=self._call_key(node),
            input=at.given,
            inputs=at.inputs,
            outputs=at.outputs,
            deadline=self._live.deadline,
            on_usage=self._spending.reporter(node.name),
        )

    def _count(self, outcome: str) -> None:
        self._bench.host.metrics.workflow_nodes.labels("function", outcome).inc()


_CANCELLED = RunError(
    message="it was cancelled before it had an output", type="cancelled", error_class=ErrorClass.INTERNAL
)


def _outcome_unknown(reason: str) -> RunError:
    return RunError(message=reason, type="outcome_unknown", error_class=ErrorClass.INTERNAL)


def _not_here(node: WorkflowNode) -> RunError:
    return RunError(
        message=f"this host has no function {node.function!r}",
        type="function_not_found",
        error_class=ErrorClass.INVALID,
    )


def _raised(function: WorkflowFunction, error: Exception) -> RunError:
    return RunError(
        message=f"function {function.name} failed: {storable(words_of(error))}",
        type="node_failed",
        error_class=ErrorClass.INTERNAL,
    )
