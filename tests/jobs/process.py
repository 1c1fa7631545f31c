"""`tracon worker` in a process of its own, to be killed."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cli.command import TRACON, environment


@contextmanager
def working(folder: Path, dsn: str, toml: str) -> Iterator["subprocess.Popen[str]"]:
    """A worker that is ready; killed in the end if it still lives."""
    config, log = folder / "worker.toml", folder / "worker.log"
    config.write_text(toml)
    with log.open("wb") as errors:
        process = subprocess.Popen(
            (TRACON, "worker", "--config", str(config), "--dsn", dsn),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment(),
        )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert "worker is ready" in line, f"the worker did not start: {log.read_text()}"
            yield process
        finally:
            process.kill()
