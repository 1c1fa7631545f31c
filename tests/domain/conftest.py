"""How hard the property tests try. `CI` in the environment makes them the same on every run."""

import os

from hypothesis import HealthCheck, settings

_SLOW_START = [HealthCheck.too_slow]

settings.register_profile("dev", deadline=None, suppress_health_check=_SLOW_START)
settings.register_profile("ci", settings.get_profile("dev"), derandomize=True, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")
