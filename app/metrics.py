"""Every series that a host shows to Prometheus, on its own registry so that two hosts fit in one test."""

from collections.abc import Iterable
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector

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
from domain.messages import Usage
from domain.run import status_after

_HTTP_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_CALL_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
_APPEND_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30)
_WAIT_SECONDS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60, 300, 1800, 7200)
_COUNTED: frozenset[type[Event]] = frozenset({RunStarted, *get_args(RunEnd), *get_args(ApprovalEvent)})
_BATCH_EVENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """The series, one attribute each. Labels come from closed sets; an id of a run, call or key is never one.

    | label | values |
    |---|---|
    | `route` | the path templates of the API, and `unmatched` |
    | `method`, `status` | HTTP methods that are served, and `OTHER`; status codes that were answered |
    | `status` (runs) | `Completed`, `Failed`, `Cancelled`, `AwaitingApproval`, `AwaitingInput` |
    | `agent`, `provider`, `model`, `tool` | names from the settings file and from code |
    | `outcome` (model calls) | `replied`, or the failure class |
    | `outcome` (tool calls) | `returned`, or the kind of failure, or `left_behind` |
    | `outcome` (appends) | `written`, `conflict`, `unavailable` |
    | `outcome` (idempotent requests) | `executed`, `replayed`, `in_progress`, `reused` |
    | `direction` | `input`, `output`, `cached_input`, `reasoning` |
    | `lane` | lanes of the settings |
    | `kind`, `outcome` (workflow nodes) | `agent`, `function`; `completed`, `failed`, `retried`, `refused` |
    | `outcome` (cancels) | `queued`, `here`, `elsewhere`, `withdrawn`, `already_ended`, |
    | | `owner_gone`, `not_here` |
    | `outcome` (duties) | `done`, `postponed`, `failed` |
    | `outcome` (approvals) | `requested`, `approved`, `rejected` (some call), `expired`, `withdrawn` |
    | `duty`, `lease` | names of periodic duties and of leases |
    | `outcome` (schedule firings) | `fired`, `skipped`, `beaten` |
    | `trigger` | names of triggers in the settings |
    | `outcome` (trigger deliveries) | `queued`, `repeated`, `refused` |
    | `cause` | why an interrupted run is not continued (`ContinuationBlock`) |
    | `projection` | names of projections |
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._describe_host()
        self._describe_http()
        self._describe_runs()
        self._describe_calls()
        self._describe_gate()
        self._describe_store()
        self._describe_jobs()
        self._describe_workflows()
        self._describe_host_life()
        self._describe_fleet()
        self._describe_approvals()

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

    def count_reply(self, provider: str, model: str, usage: Usage) -> None:
        """A call that came back, and what it used."""
        self.model_calls.labels(provider, model, "replied").inc()
        for direction, amount in (
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cached_input", usage.cached_input_tokens),
            ("reasoning", usage.reasoning_tokens),
        ):
            if amount:
                self.tokens.labels(provider, model, direction).inc(amount)

    def _describe_host(self) -> None:
        self.build_info = Gauge(
            "tracon_build_info",
            "Always 1; the labels say what runs here.",
            ["version", "python"],
            registry=self.registry,
        )
        ProcessCollector(namespace="tracon", registry=self.registry)

    def _describe_http(self) -> None:
        self.http_requests = Counter(
            "tracon_http_requests_total",
            "Requests answered. An event stream counts when it ends.",
            ["method", "route", "status"],
            registry=self.registry,
        )
        self.http_request_seconds = Histogram(
            "tracon_http_request_seconds",
            "Time to answer a request, event streams left out; a run that is waited for included.",
            ["method", "route"],
            buckets=_HTTP_SECONDS,
            registry=self.registry,
        )
        self.idempotent_requests = Counter(
            "tracon_idempotent_requests_total",
            "Requests with an Idempotency-Key, by what became of them.",
            ["outcome"],
            registry=self.registry,
        )
        self.http_connections = Gauge(
            "tracon_http_connections", "Client connections that are open.", registry=self.registry
        )
        self.sse_streams = Gauge(
            "tracon_sse_streams", "Event streams that are open now.", registry=self.registry
        )

    def _describe_runs(self) -> None:
        self.runs_live = Gauge(
            "tracon_runs_live", "Runs whose actor is on this host.", registry=self.registry
        )
        self.runs_started = Counter(
            "tracon_runs_started_total", "Runs that this host accepted.", ["agent"], registry=self.registry
        )
        self.runs_ended = Counter(
            "tracon_runs_ended_total",
            "Runs that this host recorded the end of, by the status they ended with.",
            ["status"],
            registry=self.registry,
        )

    def _describe_calls(self) -> None:
        self.model_calls = Counter(
            "tracon_model_calls_total",
            "Calls made to a provider, by how they ended.",
            ["provider", "model", "outcome"],
            registry=self.registry,
        )
        self.model_call_seconds = Histogram(
            "tracon_model_call_seconds",
            "Time of one call to a provider, its whole stream included.",
            ["provider", "model"],
            buckets=_CALL_SECONDS,
            registry=self.registry,
        )
        self.tokens = Counter(
            "tracon_tokens_total",
            "Tokens that providers reported. Cached input is in the input, reasoning in the output.",
            ["provider", "model", "direction"],
            registry=self.registry,
        )
        self.tool_calls = Counter(
            "tracon_tool_calls_total",
            "Tool calls, by how they ended.",
            ["tool", "outcome"],
            registry=self.registry,
        )
        self.tool_call_seconds = Histogram(
            "tracon_tool_call_seconds",
            "Time of one tool call, its retries included.",
            ["tool"],
            buckets=_CALL_SECONDS,
            registry=self.registry,
        )

    def _describe_gate(self) -> None:
        self.circuit_open = Gauge(
            "tracon_circuit_open",
            "1 while this host's circuit of the provider is open or half open.",
            ["provider"],
            registry=self.registry,
        )
        self.tenant_circuits_open = Gauge(
            "tracon_tenant_circuits_open",
            "How many tenants with a key of their own have an open or half open circuit at the provider.",
            ["provider"],
            registry=self.registry,
        )
        self.provider_up = Gauge(
            "tracon_provider_up",
            "1 if the provider answered when this host last looked (`health.background_interval`).",
            ["provider"],
            registry=self.registry,
        )
        self.circuit_opened = Counter(
            "tracon_circuit_opened_total",
            "How often a circuit of the provider opened on this host, those of tenants' own keys included.",
            ["provider"],
            registry=self.registry,
        )
        self.circuit_refused = Counter(
            "tracon_circuit_refused_total",
            "Calls that were not made because a circuit of the provider was open.",
            ["provider"],
            registry=self.registry,
        )
        self.model_places_in_use = Gauge(
            "tracon_model_places_in_use",
            "Calls to the provider that hold a place, where places are limited.",
            ["provider"],
            registry=self.registry,
        )
        self.model_calls_waiting = Gauge(
            "tracon_model_calls_waiting",
            "Calls that wait for a place at the provider.",
            ["provider"],
            registry=self.registry,
        )
        self.fallbacks = Counter(
            "tracon_model_fallbacks_total",
            "Switches from one link of a chain to the next.",
            ["primary", "fallback"],
            registry=self.registry,
        )
        self.budget_waiting = Gauge(
            "tracon_budget_waiting",
            "Model calls that wait for others of their tree: those may use up what is left of its budget.",
            registry=self.registry,
        )
        self.budget_refusals = Counter(
            "tracon_budget_refusals_total",
            "Model turns, tool calls, nodes and child runs that a limit of their tree kept from starting.",
            ["limit"],  # depth | total_runs | total_tokens | total_cost | duration
            registry=self.registry,
        )
        self.quota_refusals = Counter(
            "tracon_quota_refusals_total",
            "Submissions, and pieces of work of live runs, that a used-up quota kept from starting.",
            ["quota", "what"],  # names from the settings; submission | work
            registry=self.registry,
        )
        self.model_retries = Counter(
            "tracon_model_retries_total",
            "Calls made once more to the same link after a failure.",
            ["provider", "model"],
            registry=self.registry,
        )
        self.cached_replies = Counter(
            "tracon_cached_replies_total",
            "Replies given again in place of a call.",
            ["provider", "model"],
            registry=self.registry,
        )

    def _describe_store(self) -> None:
        self.store_up = Gauge(
            "tracon_store_up",
            "1 while the event store answers, 0 while it does not.",
            registry=self.registry,
        )
        self.append_seconds = Histogram(
            "tracon_append_seconds",
            "Time to make a batch of events durable.",
            ["outcome"],
            buckets=_APPEND_SECONDS,
            registry=self.registry,
        )
        self.append_events = Histogram(
            "tracon_append_events",
            "Events that went into one batch.",
            buckets=_BATCH_EVENTS,
            registry=self.registry,
        )
        self.projection_lag = Gauge(
            "tracon_projection_lag_events",
            "How far a projection is behind the end of the log, in log positions.",
            ["projection"],
            registry=self.registry,
        )
        self.projection_lag_seconds = Gauge(
            "tracon_projection_lag_seconds",
            "Age of the oldest event that a projection has not folded.",
            ["projection"],
            registry=self.registry,
        )
        self.projection_stopped = Gauge(
            "tracon_projection_stopped",
            "1 while a projection cannot go on: it met an event that it could not fold.",
            ["projection"],
            registry=self.registry,
        )

    def _describe_jobs(self) -> None:
        self.jobs_live = Gauge(
            "tracon_jobs_live", "Jobs that this host's worker has.", registry=self.registry
        )
        self.jobs_waiting = Gauge(
            "tracon_jobs_waiting",
            "Jobs that no worker has yet, of all hosts.",
            ["lane"],
            registry=self.registry,
        )
        self.job_oldest_seconds = Gauge(
            "tracon_job_oldest_seconds",
            "Age of the oldest job that no worker has yet, by the database's clock.",
            ["lane"],
            registry=self.registry,
        )
        self.job_wait_seconds = Histogram(
            "tracon_job_wait_seconds",
            "Time from a job's submission until a worker leased it, by the database's clock.",
            ["lane"],
            buckets=_WAIT_SECONDS,
            registry=self.registry,
        )
        self.job_leases_lost = Counter(
            "tracon_job_leases_lost_total",
            "Leases that ended before this host was done with the job. Its run was stopped here.",
            registry=self.registry,
        )
        self.jobs_exhausted = Counter(
            "tracon_jobs_exhausted_total",
            "Jobs that were given up because their last worker was gone.",
            ["lane"],
            registry=self.registry,
        )
        self.schedule_firings = Counter(
            "tracon_schedule_firings_total",
            "Due times of schedules that this host settled.",
            ["outcome"],
            registry=self.registry,
        )
        self.trigger_deliveries = Counter(
            "tracon_trigger_deliveries_total",
            "Signed requests to inbound triggers. One whose trigger does not exist is counted under none.",
            ["trigger", "outcome"],
            registry=self.registry,
        )

    def _describe_workflows(self) -> None:
        self.workflows_waiting = Gauge(
            "tracon_workflows_waiting",
            "Workflow runs of this host that wait for one of workflows.max_concurrent_runs places.",
            registry=self.registry,
        )
        self.super_steps = Counter(
            "tracon_workflow_super_steps_total", "Super-steps that were finished.", registry=self.registry
        )
        self.workflow_nodes = Counter(
            "tracon_workflow_nodes_total",
            "Attempts of workflow nodes, by what they do and what came of it.",
            ["kind", "outcome"],
            registry=self.registry,
        )

    def _describe_host_life(self) -> None:
        self.heartbeat_failures = Counter(
            "tracon_heartbeat_failures_total",
            "Heartbeats that could not be written. The next one was tried all the same.",
            registry=self.registry,
        )
        self.heartbeat_age = Gauge(
            "tracon_heartbeat_age_seconds",
            "Time since this host's last heartbeat that was written.",
            registry=self.registry,
        )
        self.runs_fenced = Counter(
            "tracon_runs_fenced_total",
            "Runs that this host let go because somebody else had closed them.",
            registry=self.registry,
        )
        self.cancels = Counter(
            "tracon_cancels_total", "Requests to cancel a run.", ["outcome"], registry=self.registry
        )
        self.draining = Gauge(
            "tracon_draining", "1 while this host takes no new runs because it stops.", registry=self.registry
        )
        self.lease_held = Gauge(
            "tracon_lease_held",
            "1 while this host does the work that the lease is for.",
            ["lease"],
            registry=self.registry,
        )
        self.duties = Counter(
            "tracon_duties_total",
            "Rounds of a periodic duty on this host.",
            ["duty", "outcome"],
            registry=self.registry,
        )
        self.runs_continued = Counter(
            "tracon_runs_continued_total",
            "Runs that this host opened in place of interrupted ones.",
            registry=self.registry,
        )
        self.continuations_blocked = Counter(
            "tracon_continuations_blocked_total",
            "Interrupted runs that are not continued, by why.",
            ["cause"],
            registry=self.registry,
        )
        self.runs_orphaned = Counter(
            "tracon_runs_orphaned_total",
            "Runs that this host closed because nobody answered for them any more.",
            registry=self.registry,
        )
        self.reconciliation_conflicts = Counter(
            "tracon_reconciliation_conflicts_total",
            "Runs that turned out to be alive, or to be closed by somebody else, when this host closed them.",
            registry=self.registry,
        )

    def _describe_approvals(self) -> None:
        self.approvals = Counter(
            "tracon_approvals_total",
            "What became of approvals, where this host recorded it.",
            ["outcome"],
            registry=self.registry,
        )
        self.approvals_waiting = Gauge(
            "tracon_approvals_waiting",
            "Approvals that wait for a person's decision, of all tenants and hosts.",
            registry=self.registry,
        )

    def _describe_fleet(self) -> None:
        self.hosts_alive = Gauge(
            "tracon_hosts_alive",
            "Hosts that were heard of lately, this one included.",
            registry=self.registry,
        )
        self.runs_running = Gauge(
            "tracon_runs_running", "Runs that the log says are running, on all hosts.", registry=self.registry
        )
        self.runs_unaccounted = Gauge(
            "tracon_runs_unaccounted",
            "Runs that the log says are live, less those that hosts say they have. More than zero: nobody has"
            " them.",
            registry=self.registry,
        )
        self.runs_silent = Gauge(
            "tracon_runs_silent",
            "Runs whose last heartbeat is older than the orphan threshold.",
            registry=self.registry,
        )
        self.cancels_pending = Gauge(
            "tracon_cancels_pending",
            "Cancels that were accepted and whose runs have not ended.",
            registry=self.registry,
        )
        self.lease_age = Gauge(
            "tracon_lease_age_seconds",
            "Time since the lease was renewed, by whichever host holds it.",
            ["lease"],
            registry=self.registry,
        )
        self.model_calls_live = Gauge(
            "tracon_model_calls_live",
            "Calls to the provider that are under way.",
            ["provider"],
            registry=self.registry,
        )
