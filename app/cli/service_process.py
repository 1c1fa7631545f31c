"""A `tracon serve` in a process of its own."""

import asyncio
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from pathlib import Path
from typing import Self

from app.cli.failures import Failed

_READY_S = 40.0
_STOP_S = 15.0


class ServiceProcess:
    """A running service. Whoever starts one closes it."""

    def __init__(self, process: Process, url: str) -> None:
        self._process = process
        self.url = url

    @classmethod
    async def start(cls, *arguments: str, log: Path) -> Self:
        """Start `tracon serve` with these arguments and wait until it is ready. It logs to the file."""
        # -P: the working directory may hold packages with the names of ours.
        command = (sys.executable, "-P", "-m", "app", "serve", *arguments)
        with log.open("ab") as errors:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=DEVNULL, stdout=PIPE, stderr=errors
            )
        try:
            return cls(process, await _url_of(process, log))
        except BaseException:
            await _kill(process)
            raise

    async def stop(self) -> int:
        """Ask it to stop, and return its exit status."""
        self._process.send_signal(signal.SIGTERM)
        return await asyncio.wait_for(self._process.wait(), _STOP_S)

    async def kill(self) -> None:
        """End it with no chance to clean up."""
        await _kill(self._process)

    async def close(self) -> None:
        """End it if it still runs: politely, and if that does not help, by force."""
        if self._process.returncode is None:
            with suppress(TimeoutError):
                await self.stop()
        await _kill(self._process)


async def _url_of(process: Process, log: Path) -> str:
    line = b""
    if process.stdout is not None:
        line = await asyncio.wait_for(process.stdout.readline(), _READY_S)
    found = re.search(r"https?://\S+", line.decode())
    if found is None:
        raise Failed(f"the service did not start: {_last_line(log)}")
    return found[0]


async def _kill(process: Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()


def _last_line(log: Path) -> str:
    return log.read_text(errors="replace").strip().rpartition("\n")[2]
