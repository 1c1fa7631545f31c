"""The tool calls that a reply asked for: each invoked on record, run, and its result on record."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial

from app.faults import fault_point
from app.supervision.agent_calls import AgentCalls
from app.supervision.agent_tools import AgentTool
from app.supervision.approval_gate import ApprovalGate
from app.supervision.child_runs import RunsChildren
from app.supervision.live_run import LiveRun
from app.supervision.ownership import make_sure
from app.supervision.spending import Spending
from app.supervision.workbench import Workbench
from app.tools.context import ToolContext
from app.tools.registry import Tool
from app.tools.runner import ToolError, ToolFinished, ToolLeftBehind, ToolOutput
from domain.agent import AgentDefinition
from domain.commands import (
    AnswerToolCall,
    InvokeTool,
    RecordToolFailure,
    RecordToolOutput,
    RecordUnknownOutcome,
)
from domain.events import ToolEffect, ToolFailure
from domain.messages import ToolCall
from domain.replay import ReplayTools
from domain.run import OpenCall
from domain.truncation import is_cut_off

Begun = tuple[ToolCall, Tool | AgentTool, str]
"""A call whose beginning is on record, and its key."""

NOT_RUN = "This is a replay: tools do not run in it, and no result of such a call was recorded."
NOT_STARTED = "The tool call did not start."
CUT_OFF = "The reply reached its output limit within this call, so it was not made. Make it again, shorter."
CANCELLED = "The call was cancelled before it had a result."


class ToolStep:
    """Performs the tool calls of one run. `stopping` says whether the run is being ended on purpose."""

    def __init__(
        self,
        live: LiveRun,
        bench: Workbench,
        definition: AgentDefinition,
        children: RunsChildren,
        spending: Spending,
        stopping: Callable[[], bool],
    ) -> None:
        self._live = live
        self._bench = bench
        tools, agents = frozenset(definition.tools), frozenset(definition.agents)
        self._names = tools | agents
        self._find = partial(_found, bench, live.tenant, tools, agents)
        self.gate = ApprovalGate(live, self._find)
        self._calls_to_agents = AgentCalls(live, children)
        self._spending = spending
        self._stopping = stopping

    async def perform(self, calls: Sequence[ToolCall]) -> None:
        """Get a result for each call; several run at the same time."""
        ready = [begun for call in calls if (begun := self._prepare(call)) is not None]
        await self._live.flush()  # ToolInvoking is committed before the body starts (EVENT-2)
        if len(ready) == 1:
            await self._run(*ready[0])
        elif ready:
            await self._run_together(ready)

    def waits_for_a_person(self, one: OpenCall) -> bool:
        """What a spent budget or quota refuses anyway is put before nobody (BUDGET-4, BUDGET-6)."""
        return not self._spending.is_spent and self.gate.is_shut(one)

    def _prepare(self, call: ToolCall) -> Begun | None:
        """Put the call's beginning on record. None: it has its result already."""
        if refusal := self._spending.refusal_before_tool():
            self._fail(call, ToolFailure.REFUSED, f"{refusal.message}. {NOT_STARTED}")
            return None
        if (denial := self.gate.denial_of(call)) is not None:
            self._fail(call, ToolFailure.DENIED, denial)
            return None
        if self._runs_no_bodies:
            self._look_up(call)
            return None
        tool = self._find(call.name)
        if tool is None:
            known = ", ".join(sorted(self._names)) or "none"
            output = f"There is no tool {call.name!r}. Tools that may be called: {known}."
            self._fail(call, ToolFailure.UNKNOWN_TOOL, output)
            return None
        if is_cut_off(self._live.run, call):
            self._fail(call, ToolFailure.INVALID_ARGUMENTS, CUT_OFF)
            return None
        harmless = tool.safe_to_repeat or tool.effect is ToolEffect.READ
        if result := self._live.ledger.answer(call.name, call.arguments, harmless=harmless):
            # An earlier link made this very call: its effect is not had twice (CHAIN-6).
            self._live.execute(AnswerToolCall(call_id=call.id, result=result))
            return None
        if isinstance(tool, AgentTool):
            self._calls_to_agents.prepare(call)
        key = self._live.ledger.call_key(self._live.run.chain_root, call.name, call.arguments)
        self._live.execute(
            InvokeTool(call_id=call.id, effect=tool.effect, call_key=key, safe_to_repeat=tool.safe_to_repeat)
        )
        return call, tool, key

    @property
    def _runs_no_bodies(self) -> bool:
        created = self._live.run.created
        replay = created.replay if created else None
        return replay is not None and replay.tools is not ReplayTools.LIVE

    def _look_up(self, call: ToolCall) -> None:
        """A replay's call: its result is in the ledger, or there is none."""
        if result := self._live.ledger.answer(call.name, call.arguments):
            self._live.execute(AnswerToolCall(call_id=call.id, result=result))
        else:
            self._fail(call, ToolFailure.NOT_RUN, NOT_RUN)

    def _fail(self, call: ToolCall, failure: ToolFailure, output: str) -> None:
        self._live.execute(RecordToolFailure(call_id=call.id, failure=failure, output=output))

    async def _run_together(self, ready: Sequence[Begun]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for begun in ready:
                    group.create_task(self._run(*begun))
        except BaseExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _run(self, call: ToolCall, tool: Tool | AgentTool, key: str) -> None:
        fault_point("tool.body.before")
        try:
            outcome = await self._outcome(call, tool, key)
        except asyncio.CancelledError as cancelled:
            self._unwound(call, cancelled)
            # Bare: the timeouts of Python 3.11 take a subclass of it for somebody else's error.
            raise asyncio.CancelledError from cancelled
        fault_point("tool.body.after")
        self._record(call, outcome)

    async def _outcome(self, call: ToolCall, tool: Tool | AgentTool, key: str) -> ToolOutput | ToolError:
        sure = partial(make_sure, self._live, self._bench)
        if isinstance(tool, AgentTool):
            await sure()
            return await self._calls_to_agents.make(call, tool)
        context = self._context(call, key)
        return await self._bench.tool_runner.run(tool, call.arguments, context, before=sure)

    def _unwound(self, call: ToolCall, cancelled: asyncio.CancelledError) -> None:
        """What the call came to when it was cancelled. A host that stops leaves it without a result."""
        match cancelled:
            case ToolFinished(outcome=outcome):
                self._record(call, outcome)
            case ToolLeftBehind() if self._stopping():
                self._live.execute(RecordUnknownOutcome(call_id=call.id, reason=str(cancelled)))
                self._bench.metrics.tool_calls.labels(call.name, "left_behind").inc()
            case _ if self._stopping():
                self._record(call, ToolError(failure=ToolFailure.CANCELLED, text=CANCELLED))
            case _:
                pass

    def _record(self, call: ToolCall, outcome: ToolOutput | ToolError) -> None:
        command: RecordToolOutput | RecordToolFailure
        if isinstance(outcome, ToolOutput):
            command = RecordToolOutput(
                call_id=call.id,
                output=outcome.text,
                duration_ms=outcome.duration_ms,
                truncated=outcome.truncated,
            )
        else:
            command = RecordToolFailure(
                call_id=call.id,
                failure=outcome.failure,
                output=outcome.text,
                duration_ms=outcome.duration_ms,
            )
        self._live.execute(command)
        ended = "returned" if isinstance(outcome, ToolOutput) else outcome.failure
        self._bench.metrics.tool_calls.labels(call.name, ended).inc()
        self._bench.metrics.tool_call_seconds.labels(call.name).observe(outcome.duration_ms / 1000)

    def _context(self, call: ToolCall, key: str) -> ToolContext:
        created = self._live.run.created
        return ToolContext(
            tenant=self._live.tenant,
            run_id=self._live.id,
            session_id=created.session_id if created else None,
            call_id=call.id,
            call_key=key,
            deadline=self._live.deadline,
            on_usage=self._spending.reporter(call.id),
        )


def _found(
    bench: Workbench, tenant: str, tools: Collection[str], agents: Collection[str], name: str
) -> Tool | AgentTool | None:
    """What an agent with these tools and agents may call by this name."""
    if name in agents:
        return bench.agents.get(tenant, name)
    return bench.tools.get(name) if name in tools else None
