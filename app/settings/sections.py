"""The sections of a settings file. A component is given its section and nothing else.

Names in the file carry no unit: every duration is in seconds once it is parsed.
"""

import re
from decimal import Decimal
from typing import Annotated, Any, Literal

import msgspec

from app.settings.durations import AnySeconds, Interval, LeaseSeconds, PositiveSeconds, Seconds
from domain.agent import NAME_PATTERN
from domain.quota import Metric, Period

Count = Annotated[int, msgspec.Meta(ge=1)]


class BrokenRelation(ValueError):
    """Two settings that do not fit together. Change the one named by `key`, or the other."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group of settings that one component is given."""


class ServerSettings(Section, frozen=True, kw_only=True):
    host: Annotated[str, msgspec.Meta(min_length=1)] = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 8080
    """0 takes any free port; the line that is printed when ready names it."""
    prefix: str = "/tracon"
    """What every path of the service starts with."""
    max_body_bytes: Count = 1_048_576
    """Longer request bodies are refused."""
    head_timeout: PositiveSeconds = 30.0
    """How long a new connection may take to ask for something."""
    body_timeout: PositiveSeconds = 30.0
    """How long a request's body may take to come, from when it is read."""
    write_timeout: PositiveSeconds = 60.0
    """How long a client may take nothing of its answer before it is hung up on."""
    on_disconnect: Literal["continue", "cancel"] = "continue"
    """What becomes of a run whose client hangs up while it watches or waits. With a key it always goes on."""
    sse_keepalive: PositiveSeconds = 15.0
    """How long an event stream may be silent before a comment keeps it open."""

    def __post_init__(self) -> None:
        if self.prefix and (not self.prefix.startswith("/") or self.prefix.endswith("/")):
            raise BrokenRelation("prefix", f"{self.prefix!r} must start with a slash and not end with one")


class AuthSettings(Section, frozen=True, kw_only=True):
    """Who is served (HTTP-4)."""

    required: bool = False
    """Whether clients on the service's own machine need a key too."""
    cache_ttl: PositiveSeconds = 5.0
    """How long a host may go by what it knows of a key. A revocation acts everywhere within this time."""


class RateLimitSettings(Section, frozen=True, kw_only=True):
    """What one tenant may send to one host."""

    requests_per_second: Annotated[float, msgspec.Meta(gt=0)] | None = None
    """None: no limit."""
    burst: Count | None = None
    """How many requests may come at once after a quiet time; none: one second's worth."""


class StoreSettings(Section, frozen=True, kw_only=True):
    outage_patience: Seconds = 30.0
    """How long a live run holds when the store cannot be reached, before it ends (EVENT-8)."""
    strict: bool = False
    """Appends take turns, so that readers which know nothing of Tracon's order may tail the log safely."""
    direct_dsn: str | None = None
    """Where notifications are listened for, when the database's own DSN leads through a pooler."""
    compress: bool = False
    encryption_key_env: str | None = None
    """The environment variable with the key that payloads are encrypted under; none: not encrypted."""


class RecordingSettings(Section, frozen=True, kw_only=True):
    deltas: Literal["recorded", "live"] = "recorded"
    """"live" streams text as it comes and records only the whole message (EVENT-7)."""
    delta_window: Seconds = 0.04
    """How long text of one step may gather before it is recorded."""
    delta_bytes: Count = 4096
    """How much text of one step may gather before it is recorded."""
    display_limit: Count = 65536
    """Bytes of one payload that are displayed; what a replay needs is never cut."""


class TurnSettings(Section, frozen=True, kw_only=True):
    max_steps: Count = 50
    timeout: PositiveSeconds = 600.0
    """A run's deadline."""
    max_length_continuations: Annotated[int, msgspec.Meta(ge=0)] = 3
    """How many further calls carry on an answer that the output limit ended (CHAIN-8)."""
    max_nudges: Annotated[int, msgspec.Meta(ge=0)] = 1
    """How often a turn that ends without its deliverable is told so (CHAIN-9)."""


class ToolLoopSettings(Section, frozen=True, kw_only=True):
    allow_concurrent_tool_calls: bool = False
    """Start all calls of one step together instead of one after the other."""


class CancellationSettings(Section, frozen=True, kw_only=True):
    grace: Seconds = 5.0
    """How long a cancelled tool body may take to stop before it is left behind (CANCEL-3)."""
    scope: Literal["cluster", "process"] = "cluster"
    """Whether a cancel reaches runs that live on other hosts."""
    wait_timeout: Seconds = 30.0
    """How long a client that cancels with `wait` is kept waiting for the run's end."""


class ChainSettings(Section, frozen=True, kw_only=True):
    """The time limits of one model call (CLASS-2)."""

    connect_timeout: PositiveSeconds = 10.0
    first_content_timeout: PositiveSeconds = 10.0
    stream_idle_timeout: PositiveSeconds = 25.0
    call_timeout: PositiveSeconds = 600.0
    retry_after_cap: Seconds = 2.0
    """The longest wish of a rate-limiting provider that is still waited for."""
    classifiers: tuple[Literal["context_overflow_to_larger", "payment_required_to_next"], ...] = ()
    """Optional rules of what a failure is (CLASS-3)."""


class PricingSettings(Section, frozen=True, kw_only=True):
    currency: Annotated[str, msgspec.Meta(pattern="^[A-Z]{3}$")] = "USD"


class CircuitBreakerSettings(Section, frozen=True, kw_only=True):
    enabled: bool = True
    failure_threshold: Count = 5
    """Counted failures in a row that open a provider's circuit (BREAK-1)."""
    break_duration: PositiveSeconds = 30.0
    probe_patience: PositiveSeconds = 30.0
    """How long the one call that tries a half-open circuit keeps others out, if it does not end (BREAK-2)."""


class HealthSettings(Section, frozen=True, kw_only=True):
    """Looking at providers when nobody calls them."""

    background_interval: Interval | None = None
    """How often; none: never. What is seen is told, and decides nothing: circuits go by calls alone."""
    probe_timeout: PositiveSeconds = 10.0
    """A provider that has not answered by then is down."""


class ModelConcurrencySettings(Section, frozen=True, kw_only=True):
    max_concurrent_calls_per_provider: Count | None = None
    """Calls over it wait their turn; none: no limit (CONC-1)."""


class ResponseCacheSettings(Section, frozen=True, kw_only=True):
    """Replies that are kept for agents with `cache_replies`."""

    ttl: PositiveSeconds = 300.0
    max_entries: Count = 1000


class IdempotencySettings(Section, frozen=True, kw_only=True):
    enabled: bool = True
    max_key_length: Count = 255
    retention_enabled: bool = False
    """Whether an answer that is older than `retention` is given no more, and its key is as good as new."""
    retention: PositiveSeconds = 86_400.0
    sweep_interval: Interval = 60.0
    """How often to look for keys whose run has ended and whose host did not live to say so."""


class SingletonExecutionSettings(Section, frozen=True, kw_only=True):
    enabled: bool = False
    lease_duration: LeaseSeconds = 60.0
    owner_id: str = ""
    """Empty: made of the machine, the process and something unique."""


class RunReconciliationSettings(Section, frozen=True, kw_only=True):
    enabled: bool = False
    heartbeat_interval: Interval = 30.0
    orphan_threshold: PositiveSeconds = 300.0
    """A run that was silent for longer has no owner any more."""
    scan_interval: Interval = 60.0
    max_runs_per_scan: Count = 100

    def __post_init__(self) -> None:
        if self.orphan_threshold < self.heartbeat_interval:
            raise BrokenRelation(
                "orphan_threshold",
                f"{self.orphan_threshold:g} s is shorter than heartbeat_interval"
                f" ({self.heartbeat_interval:g} s): healthy runs would be closed",
            )


class SessionsSettings(Section, frozen=True, kw_only=True):
    concurrency: Literal["queue", "reject", "parallel"] = "queue"
    """What becomes of a run whose session has another one that is not over: it waits, or is refused with 409,
    or runs beside it, and does not see its turn."""


class RunContinuationSettings(Section, frozen=True, kw_only=True):
    enabled: bool = False
    max_attempts: Count = 1


class ApprovalsSettings(Section, frozen=True, kw_only=True):
    """Tool calls that a person has to approve of (TOOL-2)."""

    expires_after: AnySeconds = 7 * 86400.0
    """After that time an approval cannot be given any more. Zero or less: whenever somebody comes to it."""
    expiry_interval: PositiveSeconds = 60.0
    """How often to look for those that have expired."""


class WorkflowSettings(Section, frozen=True, kw_only=True):
    max_super_steps: Count = 100
    max_concurrent_runs: Count = 4
    run_timeout: PositiveSeconds = 600.0
    enable_checkpointing: bool = True
    resume_interrupted_runs: bool = False
    max_resume_attempts: Annotated[int, msgspec.Meta(ge=0, le=100)] = 1

    def __post_init__(self) -> None:
        if self.resume_interrupted_runs and not self.enable_checkpointing:
            raise BrokenRelation(
                "resume_interrupted_runs",
                "needs enable_checkpointing: there is nothing to resume from without it",
            )


class AgentGraphSettings(Section, frozen=True, kw_only=True):
    """What one tree of runs may use (BUDGET-1). Zero or less removes a limit, except for the depth."""

    max_depth: int = 3
    max_total_tokens: int = 200_000
    max_total_cost: Decimal | None = None
    max_total_runs: int = 25
    max_duration: AnySeconds | None = None
    """Counted while a run of the tree is at work. Nothing new begins after it; nothing is interrupted."""


class QuotaSettings(Section, frozen=True, kw_only=True):
    """What a tenant may use in a period (BUDGET-6)."""

    metric: Metric
    period: Period
    """Of UTC's days and months."""
    limit: Decimal
    """0 allows nothing."""
    tenant: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    """None: every tenant has a quota of its own."""
    agent: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    """Count the runs of this agent or workflow only; none: all together."""

    def __post_init__(self) -> None:
        if not (self.limit.is_finite() and self.limit >= 0):
            raise BrokenRelation("limit", f"{self.limit} is no number of {self.metric} that can be used up")


class LaneSettings(Section, frozen=True, kw_only=True):
    max_concurrent: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Jobs of the lane that one host works on at a time; 0 leaves the lane to other hosts."""


class AsyncRunSettings(Section, frozen=True, kw_only=True):
    """Queued runs and the workers that take them (JOB-1)."""

    max_concurrent: Count = 32
    """Jobs that one host works on at a time."""
    max_attempts: Annotated[int, msgspec.Meta(ge=1, le=100)] = 1
    """How many workers may have a job, one after the other, where the submission does not say."""
    lease_duration: LeaseSeconds = 60.0
    """How long a worker may go unheard before its jobs are offered to others. Renewed at a third."""
    poll_interval: PositiveSeconds = 1.0
    """How long work may go unnoticed when no notification arrives, and an expired lease in any case."""
    lanes: dict[str, LaneSettings] = {}
    """Served in this order. `default` is always there, and comes last unless it is named among them."""

    def __post_init__(self) -> None:
        for lane in self.lanes:
            if not re.match(NAME_PATTERN, lane):
                raise BrokenRelation(
                    f"lanes.{lane}", "is no name: letters, digits, dots, dashes, underscores"
                )


class SchedulesSettings(Section, frozen=True, kw_only=True):
    grace: Seconds = 60.0
    """A due time that nobody has fired for longer was missed; the schedule says what then (JOB-2)."""
    poll_interval: PositiveSeconds = 1.0
    """How long a change of a schedule may go unnoticed. Due times are met whatever it is."""


class TriggerSettings(Section, frozen=True, kw_only=True):
    """A place where another system asks for runs, in requests that it signs (JOB-2)."""

    agent: str
    secret_env: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    secret_file: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    tenant: Annotated[str, msgspec.Meta(min_length=1)] = "default"
    message: str = "{{ body }}"
    """What the agent is told. `{{ body }}` is the request's body."""
    parameters: dict[str, Any] = {}
    session_id: str | None = None
    tolerance: PositiveSeconds = 300.0
    """A request that was signed longer ago, or lies so far ahead, is refused."""
    lane: str = "default"
    priority: Annotated[int, msgspec.Meta(ge=-1000, le=1000)] = 0
    max_attempts: Annotated[int, msgspec.Meta(ge=1, le=100)] | None = None
    """None: `async_run.max_attempts`."""

    def __post_init__(self) -> None:
        if (self.secret_env is None) == (self.secret_file is None):
            raise BrokenRelation("secret_env", "name the place of the secret, here or as secret_file")


class DrainSettings(Section, frozen=True, kw_only=True):
    enabled: bool = False
    timeout: Seconds = 30.0
    """How long a stop waits for the runs that are still going."""
