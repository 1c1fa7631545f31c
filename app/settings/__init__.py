"""Settings: what an operator may choose, checked before anything starts.

The sections are here. `Settings`, the whole of them, and `load_settings` come from `app.settings.load`.
"""

from app.settings.durations import AnySeconds, Interval, PositiveSeconds, Seconds, parse_duration
from app.settings.sections import (
    AgentGraphSettings,
    BrokenRelation,
    CancellationSettings,
    ChainSettings,
    CircuitBreakerSettings,
    DrainSettings,
    IdempotencySettings,
    ModelConcurrencySettings,
    PricingSettings,
    RecordingSettings,
    ResponseCacheSettings,
    RunContinuationSettings,
    RunReconciliationSettings,
    Section,
    ServerSettings,
    SingletonExecutionSettings,
    StoreSettings,
    ToolLoopSettings,
    TurnSettings,
    WorkflowSettings,
)

__all__ = [
    "AgentGraphSettings",
    "AnySeconds",
    "BrokenRelation",
    "CancellationSettings",
    "ChainSettings",
    "CircuitBreakerSettings",
    "DrainSettings",
    "IdempotencySettings",
    "Interval",
    "ModelConcurrencySettings",
    "PositiveSeconds",
    "PricingSettings",
    "RecordingSettings",
    "ResponseCacheSettings",
    "RunContinuationSettings",
    "RunReconciliationSettings",
    "Seconds",
    "Section",
    "ServerSettings",
    "SingletonExecutionSettings",
    "StoreSettings",
    "ToolLoopSettings",
    "TurnSettings",
    "WorkflowSettings",
    "parse_duration",
]
