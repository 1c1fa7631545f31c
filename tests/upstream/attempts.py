"""The upstream's own account of what reached it."""

import asyncio
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Attempt:
    """One request as the server saw it. Times are the event loop's."""

    family: str
    model: str
    streamed: bool
    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    started_at: float
    connection: str
    """The client's end of the connection that it came on."""
    arrived: asyncio.Event = field(default_factory=asyncio.Event)
    """Set once the answer is under way: its first bytes are sent, or it will never have any."""
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    """A behaviour may wait here until the test lets it go on."""
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    left_at: float | None = None
    """When the client's connection closed, if that was before the answer was over and not our doing."""


class AttemptLog:
    """Every attempt, in the order of arrival."""

    def __init__(self) -> None:
        self._attempts: list[Attempt] = []
        self._grown = asyncio.Event()

    def add(self, attempt: Attempt) -> None:
        self._attempts.append(attempt)
        self._grown.set()
        self._grown = asyncio.Event()

    async def changed(self) -> None:
        """Wait for the next attempt."""
        await self._grown.wait()

    def of(self, model: str) -> list[Attempt]:
        return [attempt for attempt in self._attempts if attempt.model == model]

    def only(self, model: str) -> Attempt:
        """The one attempt of this model: nobody retried behind our back."""
        (attempt,) = self.of(model)
        return attempt

    @property
    def unfinished(self) -> int:
        return sum(not attempt.ended.is_set() for attempt in self._attempts)
