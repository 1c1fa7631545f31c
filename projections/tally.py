"""Counting a page of events: by model and by agent, each in buckets of a tenant and a UTC day."""

from collections import defaultdict
from datetime import UTC, date
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

import msgspec

from domain import events as e
from domain.events.side import SideCallFailed, SideCallReplied
from domain.failure import FailureKind
from domain.messages import Usage
from projections.base import BrokenStream, Fact
from projections.values import added, storable


class CallKey(NamedTuple):
    """Calls and their cost count on the day they came back. `currency` is empty where there is no price."""

    tenant: str
    day: date
    agent: str
    provider: str
    model_id: str
    currency: str


class CallCounts(msgspec.Struct, kw_only=True):
    runs: int = 0
    """Runs in which this model answered for the first time."""
    calls: int = 0
    """Calls that were answered."""
    failed_calls: int = 0
    unpriced_calls: int = 0
    usage: Usage = Usage()
    cost: Decimal = Decimal(0)


class ReportKey(NamedTuple):
    """Reports count on the day they were made. `currency` is empty where none was named."""

    tenant: str
    day: date
    agent: str
    kind: str
    currency: str


class ReportCounts(msgspec.Struct, kw_only=True):
    """What tools and nodes said they have spent beyond tokens."""

    reports: int = 0
    unknown: int = 0
    """Reports without an amount."""
    amount: Decimal = Decimal(0)
    counted: Decimal = Decimal(0)
    """What of it budgets have counted as cost."""


class AgentKey(NamedTuple):
    """Runs count on the day they were created, whenever they end; tool calls on the day they ended."""

    tenant: str
    day: date
    agent: str


class AgentCounts(msgspec.Struct, kw_only=True):
    created: int = 0
    started: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    ended_unstarted: int = 0
    tool_calls: int = 0
    """Tool calls that have a result or whose outcome is unknown."""
    failed_tool_calls: int = 0
    unknown_tool_calls: int = 0
    awaiting_approval: int = 0
    awaiting_input: int = 0


class LiveRun(msgspec.Struct, frozen=True, kw_only=True):
    """What later events of a run are counted by. Forgotten when the run has ended."""

    agent: str
    day: date
    started: bool = False
    models: tuple[str, ...] = ()
    """Those that have answered in it."""
    calling: tuple[str, ...] = ()
    """Tool calls under way."""


class Tally:
    """The counts of one page, to be added to those of earlier ones. `live` is as it was before the page."""

    def __init__(self, live: dict[UUID, LiveRun]) -> None:
        self.live = live
        self._before = dict(live)
        self.ended: set[UUID] = set()
        self.calls: defaultdict[CallKey, CallCounts] = defaultdict(CallCounts)
        self.reports: defaultdict[ReportKey, ReportCounts] = defaultdict(ReportCounts)
        self.agents: defaultdict[AgentKey, AgentCounts] = defaultdict(AgentCounts)

    def count(self, recorded: Fact) -> None:  # noqa: C901 - one flat dispatch
        """Raises BrokenStream for an event of a run that is not live."""
        match recorded.event:
            case e.RunCreated() as created:
                self._create(recorded, created)
            case e.RunStarted():
                self._of_run(recorded).started += 1
                self._note(recorded, started=True)
            case e.ModelReplied() | SideCallReplied() as replied:
                self._reply(recorded, replied)
            case e.ModelCallFailed() | SideCallFailed() as call if (
                call.failure.kind is not FailureKind.CIRCUIT_OPEN
            ):
                self._calls(recorded, call.provider, call.model, "").failed_calls += 1
            case e.UsageReported() as reported:
                self._report(recorded, reported)
            case e.ToolInvoking(call_id=call_id):
                self._note(recorded, calling=(*self._run(recorded).calling, storable(call_id)))
            case e.ToolReturned(call_id=call_id):
                self._tool_result(recorded, call_id)
            case e.ToolFailed(call_id=call_id):
                self._tool_result(recorded, call_id).failed_tool_calls += 1
            case e.ToolAnswered(call_id=call_id, failed=failed):
                self._tool_result(recorded, call_id).failed_tool_calls += failed
            case e.RunCompleted():
                self._end(recorded).completed += 1
            case e.RunFailed():
                self._end(recorded).failed += 1
            case e.RunCancelled():
                self._end(recorded).cancelled += 1
            case e.RunAwaitingApproval():
                self._end(recorded).awaiting_approval += 1
            case e.RunAwaitingInput():
                self._end(recorded).awaiting_input += 1
            case _:
                pass  # a view may ignore any event

    def noted(self) -> dict[UUID, LiveRun]:
        """The live runs of which there is something new to remember."""
        return {run_id: run for run_id, run in self.live.items() if run is not self._before.get(run_id)}

    def _create(self, recorded: Fact, created: e.RunCreated) -> None:
        self.live[recorded.stream_id] = LiveRun(agent=storable(created.agent), day=_day(recorded))
        self._of_run(recorded).created += 1

    def _reply(self, recorded: Fact, replied: e.ModelReplied | SideCallReplied) -> None:
        currency = "" if replied.cost is None else replied.currency
        counts = self._calls(recorded, replied.provider, replied.model, currency)
        counts.calls += 1
        counts.usage += replied.usage
        if replied.cost is None:
            counts.unpriced_calls += 1
        else:
            counts.cost = added(counts.cost, replied.cost)
        model = storable(f"{replied.provider}/{replied.model}")
        models = self._run(recorded).models
        if model not in models:
            counts.runs += 1
            self._note(recorded, models=(*models, model))

    def _report(self, recorded: Fact, reported: e.UsageReported) -> None:
        names = (storable(reported.kind), storable(reported.currency or ""))
        key = ReportKey(recorded.tenant, _day(recorded), self._run(recorded).agent, *names)
        counts = self.reports[key]
        counts.reports += 1
        if reported.amount is None:
            counts.unknown += 1
            return
        counts.amount = added(counts.amount, reported.amount)
        if reported.counted:
            counts.counted = added(counts.counted, reported.amount)

    def _tool_result(self, recorded: Fact, call_id: str) -> AgentCounts:
        calling = self._run(recorded).calling
        self._note(recorded, calling=tuple(other for other in calling if other != storable(call_id)))
        counts = self._of_day(recorded)
        counts.tool_calls += 1
        return counts

    def _end(self, recorded: Fact) -> AgentCounts:
        run, counts, today = self._run(recorded), self._of_run(recorded), self._of_day(recorded)
        today.tool_calls += len(run.calling)
        today.unknown_tool_calls += len(run.calling)
        counts.ended_unstarted += not run.started
        del self.live[recorded.stream_id]
        self.ended.add(recorded.stream_id)
        return counts

    def _run(self, recorded: Fact) -> LiveRun:
        run = self.live.get(recorded.stream_id)
        if run is None:
            name = type(recorded.event).__name__
            raise BrokenStream(f"run {recorded.stream_id} has {name} at {recorded.sequence} and is not live")
        return run

    def _note(self, recorded: Fact, **changes: object) -> None:
        self.live[recorded.stream_id] = msgspec.structs.replace(self._run(recorded), **changes)

    def _of_run(self, recorded: Fact) -> AgentCounts:
        run = self._run(recorded)
        return self.agents[AgentKey(recorded.tenant, run.day, run.agent)]

    def _of_day(self, recorded: Fact) -> AgentCounts:
        return self.agents[AgentKey(recorded.tenant, _day(recorded), self._run(recorded).agent)]

    def _calls(self, recorded: Fact, provider: str, model: str, currency: str) -> CallCounts:
        agent = self._run(recorded).agent
        names = (storable(provider), storable(model), storable(currency))
        return self.calls[CallKey(recorded.tenant, _day(recorded), agent, *names)]


def _day(recorded: Fact) -> date:
    return recorded.at.astimezone(UTC).date()
