"""The few calls that the demo makes to a service."""

from collections.abc import AsyncGenerator

import aiohttp
import msgspec

from app.http.display import EventView, FrameView
from app.http.event_list import EventList
from app.http.models import ProviderList
from domain.breaker import CircuitStatus
from domain.ids import RunId

_DATA = b"data: "


class Client:
    """Speaks to one service."""

    def __init__(self, http: aiohttp.ClientSession, url: str) -> None:
        self._http = http
        self._api = f"{url}/tracon/api"

    async def run(
        self, agent: str, message: str, session_id: str | None = None
    ) -> AsyncGenerator[FrameView, None]:
        """Start a run and yield its frames as they come."""
        url, body = f"{self._api}/agents/{agent}/run", {"message": message}
        if session_id is not None:
            body["session_id"] = session_id
        async with self._http.post(url, json=body, raise_for_status=True) as response:
            async for line in response.content:
                if line.startswith(_DATA):
                    yield msgspec.json.decode(line.removeprefix(_DATA), type=FrameView)

    async def events(self, run_id: RunId) -> tuple[EventView, ...]:
        """Everything that the service has of a run."""
        url, headers = f"{self._api}/runs/{run_id}/events", {"Accept": "application/json"}
        async with self._http.get(url, headers=headers, raise_for_status=True) as response:
            return msgspec.json.decode(await response.read(), type=EventList).events

    async def circuits(self) -> dict[str, CircuitStatus]:
        """Each provider's circuit, as the service has it."""
        async with self._http.get(f"{self._api}/models/health", raise_for_status=True) as response:
            listed = msgspec.json.decode(await response.read(), type=ProviderList)
        return {provider.provider: provider.circuit for provider in listed.providers}
