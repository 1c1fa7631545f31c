"""The settings of the hosts under test: everything that matters here is on, and impatient."""

from pathlib import Path

from app.settings.load import load_settings
from app.settings.whole import Settings
from ops.chaos.schedule import Thresholds

_TOML = """
[server]
sse_keepalive = "500ms"
[store]
outage_patience = "6s"
[turn]
timeout = "30s"
[cancellation]
grace = "300ms"
[chain]
first_content_timeout = "1500ms"
stream_idle_timeout = "1500ms"
connect_timeout = "2s"
[circuit_breaker]
failure_threshold = 20
break_duration = "1s"
[run_reconciliation]
enabled = true
heartbeat_interval = "{heartbeat_s}s"
orphan_threshold = "{orphan_s}s"
scan_interval = "{scan_s}s"
[async_run]
lease_duration = "3s"
poll_interval = "500ms"
[idempotency]
sweep_interval = "2s"
[drain]
enabled = true
timeout = "1500ms"
[run_continuation]
enabled = true
max_attempts = 3
[approvals]
expires_after = "20s"
expiry_interval = "2s"
[singleton_execution]
enabled = true
lease_duration = "3s"

[providers.primary]
type = "openai"
base_url = "{wall}/v1"
api_key_env = "CHAOS_WALL_KEY"
[providers.primary.models.first]
supports_tools = true
input_per_million = "1"
output_per_million = "2"
[providers.backup]
type = "anthropic"
base_url = "{wall}"
api_key_env = "CHAOS_WALL_KEY"
[providers.backup.models.second]
supports_tools = true

[agents.worker]
instructions = "Do what the plan says."
provider = "primary"
model = "first"
tools = ["look", "note", "refund", "charge", "settle", "notify"]
fallbacks = [{{ provider = "backup", model = "second" }}]
"""

AGENT = "worker"


def write(folder: Path, wall_url: str, *, orphan_s: float = 2.5) -> Path:
    """The settings file that every host is started with. A run counts as orphaned after `orphan_s`."""
    file = folder / "tracon.toml"
    text = _TOML.format(wall=wall_url, orphan_s=orphan_s, heartbeat_s=orphan_s / 6, scan_s=orphan_s / 5)
    file.write_text(text)
    return file


def read(file: Path) -> Settings:
    return load_settings(file, {"CHAOS_WALL_KEY": "any"})


def thresholds_of(settings: Settings) -> Thresholds:
    return Thresholds(orphan_s=settings.run_reconciliation.orphan_threshold)


def settling_s(settings: Settings) -> float:
    """How long the last run may take to end once nothing is broken any more.

    It may have been left by its host just now, is found, closed and continued, and waits in its conversation
    for others to which the same happened.
    """
    reconciliation = settings.run_reconciliation
    found_s = reconciliation.orphan_threshold + 2 * reconciliation.scan_interval
    taken_over_s = settings.singleton_execution.lease_duration
    return settings.store.outage_patience + taken_over_s + 2 * (found_s + settings.turn.timeout / 2)
