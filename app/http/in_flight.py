"""Requests that are still being answered: a host that drains waits for them, one that stops ends them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from uuid import UUID

from aiohttp import web

from app.http.request_keys import RUN_ID
from domain.errors import Unavailable
from domain.ids import RunId

IsElsewhere = Callable[[RunId], Awaitable[bool]]
"""Whether a run goes on, but not on this host."""


class HostStopping(Unavailable):
    """This host stops and cannot wait for the run any longer. The run's events go on at any other host."""

    code = "host_stopping"

    def __init__(self) -> None:
        super().__init__("This host is stopping. Any other one shows how the run goes on.")


class InFlight:
    """Each request is in it from its first byte to the end of its handler."""

    def __init__(self) -> None:
        self._requests: dict[int, web.Request] = {}  # by identity: a request has no hash
        self._timers: set[asyncio.Timeout] = set()
        self._fewer = asyncio.Event()
        self._stopping = False

    def __len__(self) -> int:
        return len(self._requests)

    @contextmanager
    def holding(self, request: web.Request) -> Iterator[None]:
        self._requests[id(request)] = request
        try:
            yield
        finally:
            del self._requests[id(request)]
            self._fewer.set()

    @asynccontextmanager
    async def until_stop(self) -> AsyncIterator[None]:
        """What waits in here for a run's end raises HostStopping when the host stops."""
        timer = asyncio.timeout(0 if self._stopping else None)
        try:
            async with timer:
                self._timers.add(timer)
                yield
        except TimeoutError:
            if timer.expired():
                raise HostStopping from None
            raise
        finally:
            self._timers.discard(timer)

    @property
    def stopping(self) -> bool:
        return self._stopping

    def stop(self) -> None:
        """Nobody waits for a run any longer."""
        self._stopping = True
        for timer in self._timers:
            timer.reschedule(asyncio.get_running_loop().time())

    async def settled(self, is_elsewhere: IsElsewhere, at_most_s: float) -> None:
        """Return when no request is left but those that watch runs of other hosts, or after that time."""
        elsewhere: set[RunId] = set()
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                while await self._any_left(is_elsewhere, elsewhere):
                    await self._fewer.wait()

    async def _any_left(self, is_elsewhere: IsElsewhere, elsewhere: set[RunId]) -> bool:
        self._fewer.clear()
        left = [_run_of(request) for request in self._requests.values()]
        for run_id in {run_id for run_id in left if run_id is not None} - elsewhere:
            if await is_elsewhere(run_id):
                elsewhere.add(run_id)
        return any(run_id is None or run_id not in elsewhere for run_id in left)


IN_FLIGHT = web.AppKey("in_flight", InFlight)


@web.middleware
async def hold(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Outermost."""
    with request.app[IN_FLIGHT].holding(request):
        return await handler(request)


def _run_of(request: web.Request) -> RunId | None:
    named = request.get(RUN_ID)
    return None if named is None else RunId(UUID(named))
