"""Where settings start from before the file and the environment say anything."""

from typing import Any, Literal

Profile = Literal["default", "production"]

_PRODUCTION: dict[str, Any] = {
    "circuit_breaker": {"enabled": True, "failure_threshold": 5, "break_duration": 30},
    "idempotency": {"enabled": True, "max_key_length": 255},
    "singleton_execution": {"enabled": True, "lease_duration": 60},
    "run_reconciliation": {
        "enabled": True,
        "heartbeat_interval": 30,
        "orphan_threshold": 300,
        "scan_interval": 60,
        "max_runs_per_scan": 100,
    },
    "agent_graph": {"max_depth": 3, "max_total_tokens": 200_000, "max_total_runs": 25},
    "model_concurrency": {"max_concurrent_calls_per_provider": None},
}

STARTS: dict[str, dict[str, Any]] = {"default": {}, "production": _PRODUCTION}
