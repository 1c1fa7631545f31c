"""The cautious defaults, the production baseline, and the file that says the same in PascalCase."""

from decimal import Decimal

import msgspec

from app.settings import (
    AgentGraphSettings,
    CircuitBreakerSettings,
    IdempotencySettings,
    ModelConcurrencySettings,
    RunReconciliationSettings,
    SingletonExecutionSettings,
)
from app.settings.load import Settings
from domain.agent import AgentDefinition, ModelOptions
from tests.settings.files import Desk

BASELINE = """{
  "Tracon": {
    "CircuitBreaker": {"Enabled": true, "FailureThreshold": 5, "BreakDuration": "00:00:30"},
    "Idempotency": {"Enabled": true, "MaxKeyLength": 255},
    "SingletonExecution": {"Enabled": true, "LeaseDuration": "00:01:00"},
    "RunReconciliation": {
      "Enabled": true,
      "HeartbeatInterval": "00:00:30",
      "OrphanThreshold": "00:05:00",
      "ScanInterval": "00:01:00",
      "MaxRunsPerScan": 100
    },
    "AgentGraph": {"MaxDepth": 3, "MaxTotalTokens": 200000, "MaxTotalRuns": 25},
    "ModelConcurrency": {"MaxConcurrentCallsPerProvider": null}
  }
}"""


def test_the_defaults_are_cautious() -> None:
    """RECON-1, CONT-1, SINGLE-1, DRAIN-1 are off; BREAK-1, CONC-1, BUDGET-1 have their documented values."""
    settings = Settings()
    assert not settings.run_reconciliation.enabled
    assert not settings.run_continuation.enabled
    assert not settings.singleton_execution.enabled
    assert not settings.drain.enabled
    assert not settings.workflows.resume_interrupted_runs
    assert settings.circuit_breaker == CircuitBreakerSettings(
        enabled=True, failure_threshold=5, break_duration=30.0
    )
    assert settings.model_concurrency == ModelConcurrencySettings(max_concurrent_calls_per_provider=None)
    assert settings.agent_graph == AgentGraphSettings(
        max_depth=3, max_total_tokens=200_000, max_total_cost=None, max_total_runs=25, max_duration=None
    )


def test_the_production_profile_is_the_baseline(desk: Desk) -> None:
    settings = desk.load('profile = "production"')
    assert settings == msgspec.structs.replace(
        Settings(),
        profile="production",
        circuit_breaker=CircuitBreakerSettings(enabled=True, failure_threshold=5, break_duration=30.0),
        idempotency=IdempotencySettings(enabled=True, max_key_length=255),
        singleton_execution=SingletonExecutionSettings(enabled=True, lease_duration=60.0),
        run_reconciliation=RunReconciliationSettings(
            enabled=True,
            heartbeat_interval=30.0,
            orphan_threshold=300.0,
            scan_interval=60.0,
            max_runs_per_scan=100,
        ),
    )


def test_the_pascal_case_baseline_loads_unchanged(desk: Desk) -> None:
    written = desk.load(BASELINE, name="tracon.json")
    assert msgspec.structs.replace(written, profile="production") == desk.load('profile = "production"')


def test_a_file_stands_above_its_profile(desk: Desk) -> None:
    settings = desk.load('profile = "production"\n[run_reconciliation]\norphan_threshold = "10m"')
    assert settings.run_reconciliation == RunReconciliationSettings(enabled=True, orphan_threshold=600.0)


def test_loading_the_production_profile_leaves_no_trace(desk: Desk) -> None:
    desk.load('profile = "production"', env={"TRACON_AGENT_GRAPH__MAX_DEPTH": "9"})
    assert desk.load('profile = "production"').agent_graph.max_depth == 3


def test_pascal_case_reaches_everywhere_but_into_chosen_names(desk: Desk) -> None:
    settings = desk.load(
        """{"Tracon": {
            "Providers": {"MyOwn": {
                "Type": "scripted",
                "Models": {"BigModel": {
                    "ContextWindow": 9, "InputPerMillion": "1", "OutputPerMillion": 2.5,
                    "Script": [{"Status": {"Status": 500, "RetryAfter": "1"}}]
                }}
            }},
            "Agents": {"MyAgent": {
                "Provider": "MyOwn", "Model": "BigModel", "Options": {"MaxOutputTokens": 5},
                "Fallbacks": [{"Provider": "MyOwn", "Model": "BigModel"}],
                "ProviderSettings": {"TopK": 5}
            }}
        }}""",
        name="tracon.json",
    )
    model = settings.providers["MyOwn"].models["BigModel"]
    assert (model.context_window, model.output_per_million) == (9, Decimal("2.5"))
    agent = settings.agents["MyAgent"]
    assert agent.options == ModelOptions(max_output_tokens=5)
    assert agent.provider_settings == {"TopK": 5}
    assert isinstance(agent, AgentDefinition)


def test_a_key_in_two_spellings_is_refused(desk: Desk) -> None:
    text = '{"Tracon": {"Server": {"Port": 1, "port": 2}}}'
    assert desk.refusals(text, name="t.json") == {"Tracon": "'port' is given twice, in two spellings"}


def test_nothing_may_stand_beside_the_root(desk: Desk) -> None:
    refused = desk.refusals('{"Tracon": {}, "Logging": {}}', name="t.json")
    assert refused["Tracon"].endswith("move Logging into it or out of the file")
    assert desk.refusals('{"Tracon": 3}', name="t.json") == {"Tracon": "must hold an object of sections"}


def test_unknown_keys_in_pascal_case_are_refused_too(desk: Desk) -> None:
    text = '{"Tracon": {"CircuitBreaker": {"FailureTreshold": 5}}}'
    assert desk.refusals(text, name="t.json") == {
        "circuit_breaker.failure_treshold": "is unknown; did you mean 'failure_threshold'?"
    }
