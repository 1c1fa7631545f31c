"""Hosts in processes of their own, to be killed, to be stopped and woken, and to be told to leave."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from uuid import UUID

from aiohttp import ClientResponse, ClientSession

from domain.ids import RunId
from tests.cli.command import ROOT, Service, serving
from tests.http.client import Frame, eventually

THRESHOLD_S = 1.5
RECONCILING = (
    '[run_reconciliation]\nenabled = true\nheartbeat_interval = "50ms"\n'
    f'orphan_threshold = "{THRESHOLD_S}s"\nscan_interval = "100ms"\n'
)
NO_SCAN = RECONCILING.replace("100ms", "1h")
TOOLS = str(ROOT / "tests/supervision/trial_tools.py")


@dataclass(frozen=True)
class Trial:
    """A host, and the folder in which its tools leave their marks."""

    service: Service
    folder: Path

    def marks(self) -> list[str]:
        file = self.folder / "marks"
        return file.read_text().split() if file.exists() else []

    def go(self) -> None:
        (self.folder / "go").touch()

    def logged(self) -> list[str]:
        """What the host has logged, as its constant strings."""
        lines = (self.folder / "log").read_text().splitlines()
        return [json.loads(line)["event"] for line in lines if line.startswith("{")]

    @asynccontextmanager
    async def run(self, agent: str, **more: str) -> AsyncIterator[RunId]:
        """A run of the host, watched for as long as the block lasts."""
        asked = {"message": "Go on.", **more}
        async with (
            ClientSession(base_url=self.service.url) as session,
            session.post(f"/tracon/api/agents/{agent}/run", json=asked) as response,
        ):
            assert response.status == 200, await response.text()
            yield RunId(UUID(response.headers["X-Run-Id"]))

    @asynccontextmanager
    async def watch(self, agent: str) -> AsyncIterator[tuple[RunId, AsyncIterator[Frame]]]:
        """A run of the host, and its frames up to the end of the answer."""
        async with (
            ClientSession(base_url=self.service.url) as session,
            session.post(f"/tracon/api/agents/{agent}/run", json={"message": "Go on."}) as response,
        ):
            assert response.status == 200, await response.text()
            yield RunId(UUID(response.headers["X-Run-Id"])), _frames(response)

    async def live(self, runs: int) -> None:
        """Return when the host has so many runs."""
        line = f"tracon_runs_live {runs}.0"
        while line not in (await asyncio.to_thread(self.service.request, "/metrics")).decode():
            await asyncio.sleep(0.01)

    async def marked(self, mark: str) -> None:
        """Return when a tool has left this mark."""
        await eventually(lambda: mark in self.marks(), within_s=30)

    async def told(self, event: str) -> None:
        """Return when the host has logged this."""
        await eventually(lambda: event in self.logged(), within_s=30)


async def _frames(response: ClientResponse) -> AsyncIterator[Frame]:
    while text := (await response.content.readuntil(b"\n\n")).decode().strip():
        if not text.startswith(":"):
            yield Frame.parse(text)


class Busy(ThreadingHTTPServer):
    """A provider that wants every call to come back in a second, and counts them, whatever loops turn."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Refusal)
        self.calls = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Refusal(BaseHTTPRequestHandler):
    server: Busy

    def do_POST(self) -> None:
        self.server.calls += 1
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(429)
        self.send_header("Retry-After", "1")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Not to the tests' output."""


@contextmanager
def busy_provider() -> Iterator[Busy]:
    with Busy() as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@contextmanager
def on_trial(folder: Path, dsn: str, toml: str) -> Iterator[Trial]:
    """`tracon serve` with these settings and the tools of the trial."""
    config = folder / "tracon.toml"
    config.write_text(toml)
    arguments = ("--config", str(config), "--app", TOOLS, "--dsn", dsn)
    with serving(*arguments, log=folder / "log", TRIAL=str(folder)) as service:
        yield Trial(service, folder)
