"""How time passes for this process. What time it is, only the database says."""

import time

_KIND = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def elapsed_s() -> float:
    """Seconds from some moment on. Nobody can set it, and it goes on while the machine is suspended."""
    return time.clock_gettime(_KIND)
