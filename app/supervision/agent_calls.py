"""A call to another agent: a child run, and its end as the call's result."""

from time import monotonic

from app.registry import AgentNotFound, UnusableAgent
from app.supervision.agent_tools import AgentTool
from app.supervision.child_runs import ChildFinished, ChildOutcome, ChildRefused, RunsChildren
from app.supervision.live_run import LiveRun
from app.tools.arguments import InvalidArguments
from app.tools.outcome import DEFAULT_OUTPUT_LIMIT, ToolError, ToolOutput, limited
from app.tools.runner import ToolFinished
from domain.events import ToolFailure
from domain.ids import RunId
from domain.messages import ToolCall
from domain.parameters import BadParameter

Outcome = ToolOutput | ToolError


class AgentCalls:
    """Makes the calls of one run. Whatever becomes of a child, there is a result that the model can read."""

    def __init__(self, live: LiveRun, children: RunsChildren) -> None:
        self._live = live
        self._children = children
        self._gone_on_from: dict[str, RunId] = {}

    def prepare(self, call: ToolCall) -> None:
        """Before the call's beginning is on record: see whether it was begun before, by an earlier run."""
        if child := self._live.ledger.interrupted_child(call.name, call.arguments):
            self._gone_on_from[call.id] = child

    async def make(self, call: ToolCall, tool: AgentTool) -> Outcome:
        """Cancelled, it ends the child first: ToolFinished if that had its answer, else a CancelledError."""
        began = monotonic()
        try:
            ask = tool.ask(call.id, call.arguments, self._gone_on_from.pop(call.id, None))
            return _read(tool, await self._children.run(self._live, ask), began)
        except ChildFinished as finished:
            raise ToolFinished(_read(tool, finished.outcome, began)) from finished
        except (InvalidArguments, BadParameter) as error:
            return ToolError(failure=ToolFailure.INVALID_ARGUMENTS, text=str(error))
        except (AgentNotFound, UnusableAgent) as error:
            return ToolError(failure=ToolFailure.UNKNOWN_TOOL, text=f"{error}.")
        except ChildRefused as refused:
            return ToolError(failure=ToolFailure.REFUSED, text=f"{refused}. The agent did not start.")


def _read(tool: AgentTool, outcome: ChildOutcome, began: float) -> Outcome:
    took_ms = round((monotonic() - began) * 1000)
    if outcome.error is None:
        text, truncated = limited(outcome.answer, DEFAULT_OUTPUT_LIMIT)
        return ToolOutput(text=text, truncated=truncated, duration_ms=took_ms)
    told = f"{tool.spec.name} ended without an answer ({outcome.error.type}): {outcome.error.message}"
    return ToolError(failure=ToolFailure.AGENT_FAILED, text=told, duration_ms=took_ms)
