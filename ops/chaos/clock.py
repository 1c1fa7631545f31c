"""A host's time of day, which can be set while the host runs: a library stands before the C library's."""

import os
import shutil
import subprocess
import time
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")
_OPTIONS = ("-shared", "-fPIC", "-O2", "-Wall", "-Werror")
_BYTES = 8

EPOCH_S = time.time() - time.monotonic()
"""What the clock that nobody can set has to be moved by to show this machine's time of day."""


class Clock:
    """One host's. Nothing else is misled: database, provider and trial know what time it is."""

    def __init__(self, file: Path, library: Path | None) -> None:
        """Without the library it is right for ever."""
        self._file = file
        self._library = library
        self.set(0)

    def set(self, off_by_s: float) -> None:
        """From now on the host's time is off by so much, a running process' too."""
        at = os.open(self._file, os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.write(at, int(off_by_s * 1e9).to_bytes(_BYTES, "little", signed=True))
        finally:
            os.close(at)

    @property
    def can_jump(self) -> bool:
        return self._library is not None

    @property
    def environment(self) -> dict[str, str]:
        """What the host has to be started with."""
        if self._library is None:
            return {}
        before = os.environ.get("LD_PRELOAD")
        preloaded = f"{self._library}:{before}" if before else str(self._library)
        return {"LD_PRELOAD": preloaded, "CHAOS_CLOCK": str(self._file)}


def library(folder: Path) -> Path | None:
    """Built there; None where there is no C compiler, or no loader that would take it."""
    compiler, built = shutil.which("cc"), folder / "clock.so"
    if compiler is None or os.uname().sysname != "Linux":
        return None
    subprocess.run([compiler, *_OPTIONS, "-o", str(built), str(_SOURCE), "-ldl"], check=True)
    return built
