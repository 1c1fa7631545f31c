"""How whoever is outside reaches the hosts of a trial: one after the other, until there is an answer."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import ClientError, ClientResponse, ClientSession, ClientTimeout

from ops.chaos.host import Host
from ops.chaos.received import Received

BROKEN = (ClientError, OSError, TimeoutError, asyncio.IncompleteReadError)
"""What a request ends in that had no answer, or not all of it."""

PAUSE_S = 0.2
_LIMIT = 1 << 22


class Reach:
    """`turn` is the number of the host that is asked next."""

    def __init__(
        self, hosts: Sequence[Host], session: ClientSession, received: Received, turn: int = 0
    ) -> None:
        self.turn = turn
        self._hosts = hosts
        self._session = session
        self._received = received

    @asynccontextmanager
    async def request(
        self, method: str, path: str, limits: ClientTimeout, what: str, **options: Any
    ) -> AsyncIterator[ClientResponse]:
        """To the host whose turn it is, or the next that is there. A status of 500 is somebody's defect."""
        url = await self._somewhere()
        try:
            async with self._session.request(
                method, url + path, timeout=limits, read_bufsize=_LIMIT, **options
            ) as response:
                self._received.status(what, response.status)
                if response.status == 500:
                    body = (await response.read()).decode(errors="replace")
                    self._received.complain("defects", f"{method} {path} was answered 500: {body}")
                yield response
        except BROKEN:
            self._received.status(what, 0)
            raise

    async def _somewhere(self) -> str:
        while True:
            for step in range(len(self._hosts)):
                url = self._hosts[(self.turn + step) % len(self._hosts)].url
                if url:
                    return url
            await asyncio.sleep(PAUSE_S * random.uniform(0.5, 1))
