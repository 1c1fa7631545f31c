"""A client of a host: requests, and event streams read frame by frame."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientResponse, ClientSession
from yarl import URL

from app.main import Host

JSON = {"Accept": "application/json"}
STREAM = {"Accept": "text/event-stream"}


@dataclass(frozen=True)
class Frame:
    """One frame of a stream, as a client of the protocol reads it."""

    id: int | None
    event: str
    data: dict[str, Any]

    @classmethod
    def parse(cls, text: str) -> "Frame":
        fields = dict(line.split(": ", 1) for line in text.splitlines())
        number = fields.get("id")
        return cls(None if number is None else int(number), fields["event"], json.loads(fields["data"]))


@dataclass(frozen=True)
class Answer:
    """An answer that was read to its end."""

    status: int
    headers: Mapping[str, str]
    body: Any = field(repr=False)


class Client:
    """Speaks to one host."""

    def __init__(self, host: Host, session: ClientSession) -> None:
        self.host = host
        self.session = session

    @property
    def address(self) -> tuple[str, int]:
        """For a socket of one's own."""
        url = URL(self.host.url)
        return url.host or "", url.port or 0

    async def get(self, path: str, **headers: str) -> Answer:
        return await self.request("GET", path, headers={**JSON, **headers})

    async def post(self, path: str, body: object = None, **headers: str) -> Answer:
        sent = {} if body is None else {"json": body}
        return await self.request("POST", path, headers={**JSON, **headers}, **sent)

    async def request(self, method: str, path: str, **options: Any) -> Answer:
        async with self.session.request(method, path, **options) as response:
            raw = await response.read()
            is_json = "json" in response.headers.get("Content-Type", "")
            return Answer(response.status, response.headers, json.loads(raw) if is_json and raw else raw)

    async def run(self, agent: str, message: str = "hello", **more: Any) -> Answer:
        """Run an agent and wait for its end."""
        return await self.post(f"/tracon/api/agents/{agent}/run", {"message": message, **more})

    @asynccontextmanager
    async def start(self, agent: str, message: str = "hello", **more: Any) -> AsyncIterator["Stream"]:
        """Run an agent and watch it. Leaving the block hangs up."""
        path = f"/tracon/api/agents/{agent}/run"
        async with self.session.post(path, json={"message": message, **more}) as response:
            yield Stream(response)

    @asynccontextmanager
    async def watch(self, run_id: str, after: int | None = None) -> AsyncIterator["Stream"]:
        """Watch a run, from after an event on."""
        headers = STREAM if after is None else {**STREAM, "Last-Event-ID": str(after)}
        async with self.session.get(f"/tracon/api/runs/{run_id}/events", headers=headers) as response:
            yield Stream(response)

    async def events(self, run_id: str, query: str = "") -> list[dict[str, Any]]:
        """The run's events as JSON."""
        answer = await self.get(f"/tracon/api/runs/{run_id}/events{query}")
        assert answer.status == 200, answer.body
        events: list[dict[str, Any]] = answer.body["events"]
        return events

    async def views_show(self, view: str) -> None:
        """Return when a view shows everything that is recorded by now."""
        services = self.host.services
        await services.views.wait_for(view, await services.log.end_position(), timeout_s=10)

    def count(self, series: str, **labels: str) -> float:
        """The value of one of the host's series; 0 if it has none yet."""
        return self.host.services.metrics.registry.get_sample_value(series, labels) or 0.0


async def eventually(holds: Callable[[], bool], within_s: float = 10.0) -> None:
    """Wait for what has no event to wait for. Raise TimeoutError if it does not come true in time."""
    async with asyncio.timeout(within_s):
        while not holds():
            await asyncio.sleep(0.01)


class Stream:
    """The frames of an answer, as they come. Comments are read over."""

    def __init__(self, response: ClientResponse) -> None:
        self.response = response

    @property
    def run_id(self) -> str:
        return self.response.headers["X-Run-Id"]

    async def next(self) -> Frame:
        while True:
            text = (await self.response.content.readuntil(b"\n\n")).decode().removesuffix("\n\n")
            if not text.startswith(":"):
                return Frame.parse(text)

    async def until(self, event: str) -> list[Frame]:
        """Frames up to the first one of this event, which is the last of them."""
        read = [await self.next()]
        while read[-1].event != event:
            read.append(await self.next())
        return read

    async def rest(self) -> list[Frame]:
        """Every frame that there still is."""
        text = (await self.response.read()).decode()
        return [Frame.parse(part) for part in text.split("\n\n") if part and not part.startswith(":")]
