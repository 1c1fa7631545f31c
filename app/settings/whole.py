"""The whole of the settings."""

import msgspec

from app.models.provider_settings import ProviderSettings
from app.settings.profiles import Profile
from app.settings.sections import (
    AgentGraphSettings,
    ApprovalsSettings,
    AsyncRunSettings,
    AuthSettings,
    BrokenRelation,
    CancellationSettings,
    ChainSettings,
    CircuitBreakerSettings,
    DrainSettings,
    HealthSettings,
    IdempotencySettings,
    ModelConcurrencySettings,
    PricingSettings,
    QuotaSettings,
    RateLimitSettings,
    RecordingSettings,
    ResponseCacheSettings,
    RunContinuationSettings,
    RunReconciliationSettings,
    SchedulesSettings,
    Section,
    ServerSettings,
    SessionsSettings,
    SingletonExecutionSettings,
    StoreSettings,
    ToolLoopSettings,
    TriggerSettings,
    TurnSettings,
    WorkflowSettings,
)
from domain.agent import AgentDefinition
from domain.workflow.definition import WorkflowDefinition


class Settings(Section, frozen=True, kw_only=True):
    """Everything an operator chose. Only the composition root has it; a component is given its section."""

    profile: Profile = "default"
    dsn: str | None = None
    """The database to use instead of an embedded one. May hold a password: never log it."""
    server: ServerSettings = ServerSettings()
    auth: AuthSettings = AuthSettings()
    rate_limit: RateLimitSettings = RateLimitSettings()
    store: StoreSettings = StoreSettings()
    recording: RecordingSettings = RecordingSettings()
    turn: TurnSettings = TurnSettings()
    tool_loop: ToolLoopSettings = ToolLoopSettings()
    sessions: SessionsSettings = SessionsSettings()
    cancellation: CancellationSettings = CancellationSettings()
    approvals: ApprovalsSettings = ApprovalsSettings()
    chain: ChainSettings = ChainSettings()
    pricing: PricingSettings = PricingSettings()
    circuit_breaker: CircuitBreakerSettings = CircuitBreakerSettings()
    health: HealthSettings = HealthSettings()
    model_concurrency: ModelConcurrencySettings = ModelConcurrencySettings()
    response_cache: ResponseCacheSettings = ResponseCacheSettings()
    idempotency: IdempotencySettings = IdempotencySettings()
    singleton_execution: SingletonExecutionSettings = SingletonExecutionSettings()
    run_reconciliation: RunReconciliationSettings = RunReconciliationSettings()
    run_continuation: RunContinuationSettings = RunContinuationSettings()
    workflows: WorkflowSettings = WorkflowSettings()
    agent_graph: AgentGraphSettings = AgentGraphSettings()
    quotas: dict[str, QuotaSettings] = msgspec.field(default_factory=dict)
    drain: DrainSettings = DrainSettings()
    async_run: AsyncRunSettings = AsyncRunSettings()
    schedules: SchedulesSettings = SchedulesSettings()
    triggers: dict[str, TriggerSettings] = msgspec.field(default_factory=dict)
    providers: dict[str, ProviderSettings] = msgspec.field(default_factory=dict)
    agents: dict[str, AgentDefinition] = msgspec.field(default_factory=dict)
    workflow_definitions: dict[str, WorkflowDefinition] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.run_continuation.enabled and not self.run_reconciliation.enabled:
            raise BrokenRelation(
                "run_continuation.enabled",
                "needs run_reconciliation.enabled: only a run that was closed as orphaned is continued",
            )
