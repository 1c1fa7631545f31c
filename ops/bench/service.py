"""The service as a process of its own, before an upstream as a process of its own."""

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_SETTINGS = """
[turn]
timeout = "1h"
[providers.up]
type = "openai"
base_url = "{upstream}/v1"
[agents.instant]
provider = "up"
model = "instant"
[agents.slow]
provider = "up"
model = "slow"
"""


@dataclass(frozen=True, kw_only=True)
class Processes:
    """Both, running."""

    url: str
    upstream: str
    pid: int

    @property
    def cpu_s(self) -> float:
        """Processor time of the service so far, user and system."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_bytes(self) -> int:
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.pid}/status").read_text())
        if found is None:
            raise RuntimeError(f"process {self.pid} shows no resident memory")
        return int(found[1]) * 1024


@contextmanager
def processes() -> Iterator[Processes]:
    """A service on an embedded Postgres in a temporary folder; everything ends with the block."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with running([sys.executable, "-m", "ops.bench.upstream"], Path(folder) / "upstream.log") as (
            _,
            upstream,
        ):
            config = Path(folder) / "tracon.toml"
            config.write_text(_SETTINGS.format(upstream=upstream))
            serve = [sys.executable, "-m", "app", "serve", "--config", str(config), "--port", "0"]
            options = ["--data-dir", f"{folder}/data", "--log-level", "warning"]
            with running(serve + options, Path(folder) / "service.log") as (service, url):
                yield Processes(url=url, upstream=upstream, pid=service.pid)


@contextmanager
def running(command: list[str], errors: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The process and the URL that ends its first line."""
    with errors.open("w") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
        )
    try:
        line = process.stdout.readline() if process.stdout else ""
        url = line.strip().rpartition(" ")[2]
        if not url:
            raise RuntimeError(f"{' '.join(command)} did not start:\n{errors.read_text()[-2000:]}")
        yield process, url
    finally:
        process.terminate()
        process.wait(30)
        for pipe in (process.stdin, process.stdout):
            if pipe:
                pipe.close()
