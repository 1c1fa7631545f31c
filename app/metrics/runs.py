"""Runs, what they wait for, and the nodes of workflows."""

from collections.abc import Iterable
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge

from app.metrics.series import Series
from domain.events import (
    ApprovalDecided,
    ApprovalEvent,
    ApprovalExpired,
    ApprovalRequested,
    ApprovalWithdrawn,
    Event,
    Recorded,
    RunEnd,
    RunStarted,
)
from domain.run import status_after

_COUNTED: frozenset[type[Event]] = frozenset({RunStarted, *get_args(RunEnd), *get_args(ApprovalEvent)})


class RunSeries(Series):
    """Runs, what they wait for, and the nodes of workflows."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.runs_live = Gauge("tracon_runs_live", "Runs whose actor is on this host.", registry=registry)
        self.runs_started = Counter(
            "tracon_runs_started_total", "Runs that this host accepted.", ["agent"], registry=registry
        )
        self.runs_ended = Counter(
            "tracon_runs_ended_total",
            "Runs that this host recorded the end of, by the status they ended with.",
            ["status"],
            registry=registry,
        )
        self.workflows_waiting = Gauge(
            "tracon_workflows_waiting",
            "Workflow runs of this host that wait for one of workflows.max_concurrent_runs places.",
            registry=registry,
        )
        self.super_steps = Counter(
            "tracon_workflow_super_steps_total", "Super-steps that were finished.", registry=registry
        )
        self.workflow_nodes = Counter(
            "tracon_workflow_nodes_total",
            "Attempts of workflow nodes, by what they do and what came of it.",
            ["kind", "outcome"],
            registry=registry,
        )
        self.approvals = Counter(
            "tracon_approvals_total",
            "What became of approvals, where this host recorded it.",
            ["outcome"],
            registry=registry,
        )
        self.approvals_waiting = Gauge(
            "tracon_approvals_waiting",
            "Approvals that wait for a person's decision, of all tenants and hosts.",
            registry=registry,
        )

    def count_runs(self, committed: Iterable[Recorded[Event]]) -> None:
        """What these facts say of runs' beginnings and ends."""
        for recorded in committed:
            if type(recorded.event) in _COUNTED:  # everything else is counted where it happens, if at all
                self._count(recorded.event)

    def _count(self, fact: Event) -> None:
        match fact:
            case RunStarted(definition=definition):
                self.runs_started.labels(definition.name if definition else "workflow").inc()
            case end if isinstance(end, RunEnd):
                self.runs_ended.labels(status_after(end)).inc()
            case ApprovalRequested():
                self.approvals.labels("requested").inc()
            case ApprovalDecided(decisions=decisions):
                of_all = all(decision.approved for decision in decisions.values())
                self.approvals.labels("approved" if of_all else "rejected").inc()
            case ApprovalExpired():
                self.approvals.labels("expired").inc()
            case ApprovalWithdrawn():
                self.approvals.labels("withdrawn").inc()
