"""Whether a run is still this host's, looked at right before each effect (EVENT-3)."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial

from app.models.port import MaySend, ModelReply, NotSent
from app.store.errors import Fenced
from app.store.patience import patiently
from app.supervision.live_run import LiveRun
from app.supervision.workbench import Workbench
from domain.ids import run_stream


async def call_as_owner(
    live: LiveRun, bench: Workbench, call: Callable[[MaySend], Awaitable[ModelReply]]
) -> ModelReply:
    """Make a model call that asks once more when its connection is there. Raise what `make_sure` raises.

    Connecting takes time, and a host may be stopped in the middle of it for longer than the orphan threshold.
    """
    while True:
        await make_sure(live, bench)
        with suppress(NotSent):
            return await call(partial(bench.presence.sure_of, live.id))


async def make_sure(live: LiveRun, bench: Workbench) -> None:
    """Raise Fenced if somebody else has moved the run, StoreUnavailable if nobody can say for too long.

    This costs nothing while the host's heartbeats are written. A host that was stopped for longer than the
    orphan threshold is in doubt about each of its runs. That a run's stream has not moved is no answer by
    itself, for another host may be about to close it; it is one after a heartbeat that vouches for the run,
    since nobody can claim it then. A run that is claimed waits here for its end, or for being let go.
    """
    while not bench.presence.sure_of(live.id):
        vouched = await bench.presence.vouch(live.id)
        await _require_unmoved(live, bench)
        if vouched is not None:
            bench.presence.confirm(live.id, vouched)
        if not bench.presence.sure_of(live.id):
            await asyncio.sleep(random.uniform(0.02, 0.1))  # noqa: S311 - jitter, not a secret


async def _require_unmoved(live: LiveRun, bench: Workbench) -> None:
    await live.flush()
    stream, known = run_stream(live.id), live.run.version
    read = partial(bench.log.read_stream, stream, after=known, limit=1)
    newer = await patiently(read, bench.store.outage_patience)
    if newer and newer[0].sequence > live.run.version:
        raise Fenced(stream)
    if newer:
        await live.flush()  # written from here meanwhile, or this says that it was not
