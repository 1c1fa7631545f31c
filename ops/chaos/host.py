"""One place for a host: a `tracon serve` of its own, its link to Postgres, and the files that it writes."""

import asyncio
import logging
import os
import re
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from contextlib import suppress
from pathlib import Path

from ops.chaos.clock import EPOCH_S, Clock
from ops.chaos.link import Link

APPLICATION = Path(__file__).with_name("application.py")

log = logging.getLogger(__name__)

_UP_S = 150.0
_PAUSE_S = 1.0
_READY_S = 60.0
_STOP_S = 40.0
_PR_SET_PDEATHSIG = 1
# Should the trial be killed, its hosts are not to outlive it. A process of its own says so before it becomes
# the host: code between fork and exec may wait for ever for a lock that another thread had.
_LAUNCH = (
    *(sys.executable, "-I", "-S", "-c"),
    "import ctypes, os, sys\n"
    f"if sys.platform == 'linux': ctypes.CDLL(None).prctl({_PR_SET_PDEATHSIG}, {signal.SIGKILL:d})\n"
    "os.execv(sys.argv[1], sys.argv[1:])",
)


class HostDied(Exception):
    """A host ended although nobody made it. Its log says why."""


class Host:
    """It can be killed, stopped, frozen and started again. `url` is None while it is not to be reached."""

    def __init__(
        self,
        number: int,
        folder: Path,
        config: Path,
        link: Link,
        clock: Clock,
        application: Path = APPLICATION,
    ) -> None:
        self.number = number
        self._application = application
        self.link = link
        self.clock = clock
        self.log = folder / f"host-{number}.log"
        self.tool_log = folder / f"tools-{number}.jsonl"
        self.url: str | None = None
        self.pids: dict[int, str] = {}
        """Each process that it was, with the key that it showed the wall."""
        self.deaths: list[str] = []
        """Ends that nobody had asked for."""
        self._config = config
        self._process: Process | None = None
        self._frozen = False
        self._expected = False
        self._watching: asyncio.Task[None] | None = None

    @property
    def up(self) -> bool:
        return self.pid is not None

    @property
    def pid(self) -> int | None:
        """Of the process that it is now, frozen or not."""
        return self._process.pid if self._process and self._process.returncode is None else None

    async def start(self, fault: str | None = None) -> None:
        """Return when it takes requests. Armed with a fault, it may end before that."""
        key = f"host{self.number}-{len(self.pids) + 1}"
        self._expected = fault is not None
        armed = {} if fault is None else {"TRACON_FAULT": fault}
        with self.log.open("ab") as log:
            process = self._process = await asyncio.create_subprocess_exec(
                *(*_LAUNCH, sys.executable, "-m", "app", "serve", "--port", "0", "--dsn", self.link.dsn),
                *("--config", str(self._config), "--app", str(self._application)),
                stdin=DEVNULL,
                stdout=PIPE,
                stderr=log,
                env=_environment(
                    CHAOS_TOOL_LOG=str(self.tool_log),
                    CHAOS_WALL_KEY=key,
                    CHAOS_EPOCH_S=repr(EPOCH_S),
                    **self.clock.environment,
                    **armed,
                ),
            )
        self.pids[process.pid] = key
        self.url = await _url_of(process)
        if self.url is not None:
            self._watching = asyncio.create_task(self._watch(process))
        elif not self._expected:
            await process.wait()
            raise HostDied(f"host {self.number} did not start: {tail(self.log)}")

    async def bring_up(self) -> None:
        """Start it as whatever minds processes does: again and again, while something is in its way."""
        loop = asyncio.get_running_loop()
        gives_up_at = loop.time() + _UP_S
        while not self.up:
            try:
                await self.start()
            except HostDied as died:
                log.info("%s", died)
                if loop.time() > gives_up_at:
                    raise
                await asyncio.sleep(_PAUSE_S)

    async def kill(self) -> None:
        """No chance to clean up."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """In good order; its exit status."""
        self.thaw()
        try:
            async with asyncio.timeout(_STOP_S):
                return await self._end(signal.SIGTERM)
        except TimeoutError:
            self.deaths.append(f"host {self.number} did not stop within {_STOP_S:g} s of SIGTERM")
            return await self._end(signal.SIGKILL)

    async def ended(self) -> int:
        """Wait until its fault has ended it; its exit status."""
        assert self._process is not None
        status = await self._process.wait()
        self.url = None
        return status

    def freeze(self) -> None:
        self._frozen = True
        self._send(signal.SIGSTOP)

    def thaw(self) -> None:
        if self._frozen:
            self._frozen = False
            self._send(signal.SIGCONT)

    async def close(self) -> None:
        """Leave nothing running."""
        if self.up:
            await self.kill()
        if self._watching:
            await asyncio.gather(self._watching, return_exceptions=True)

    async def _end(self, how: signal.Signals) -> int:
        self._expected = True
        self.url = None
        process = self._process
        if process is None:
            return 0
        self._send(how)
        return await process.wait()

    def _send(self, what: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                self._process.send_signal(what)

    async def _watch(self, process: Process) -> None:
        status = await process.wait()
        if process is self._process and not self._expected:
            self.url = None
            self.deaths.append(f"host {self.number} ended by itself with status {status}: {tail(self.log)}")


def tail(log: Path, size: int = 600) -> str:
    return log.read_text(errors="replace")[-size:].strip()


async def _url_of(process: Process) -> str | None:
    assert process.stdout is not None
    async with asyncio.timeout(_READY_S):
        line = await process.stdout.readline()
    found = re.search(r"https?://\S+", line.decode())
    return found[0] if found else None


def _environment(**variables: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRACON_")}
    return kept | variables
