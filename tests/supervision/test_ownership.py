"""A host that is in doubt about a run has no effect for it before the doubt is settled (EVENT-3)."""

import asyncio
from typing import Any

import asyncpg
import pytest

from app.clock import elapsed_s
from app.main import Host
from app.models.http import HttpSession
from app.models.port import MaySend, ModelReply
from app.store.errors import Fenced
from app.supervision.ownership import call_as_owner, make_sure
from domain import events as e
from domain.failure import ErrorClass
from domain.ids import RunId
from tests.hosts import OpenHost, follow, scripted, start
from tests.http.client import eventually
from tests.models.calling import asking
from tests.models.conftest import adapter_of
from tests.supervision.orphanage import append
from tests.upstream.server import Upstream

AGENT = '[agents.a]\nprovider = "script"\nmodel = "m"\n'
MODEL = "[providers.script.models.m.default]\nsilent = true\n"
RECONCILING = (
    '[run_reconciliation]\nenabled = true\nheartbeat_interval = "20ms"\n'
    'orphan_threshold = "1m"\nscan_interval = "1h"\n'
)
SETTINGS = scripted(MODEL, AGENT, RECONCILING)
ORPHANED = e.RunFailed(error="gone", error_type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)


async def claimed(host: Host, pool: asyncpg.Pool) -> tuple[RunId, Any]:
    """A live run of the host that another one has found silent and is about to close, and its live state."""
    run_id = await start(host, "a")
    await follow(host, run_id, e.ModelCallStarted)  # it writes nothing more by itself
    presence = host.bench.presence
    presence.on_doubt = None  # who also looks, and would stop the run's actor first
    await presence.vouch(run_id)
    claim = "UPDATE run_heartbeats SET claimed_by = 'judge', claimed_at = clock_timestamp() WHERE run_id = $1"
    assert await pool.execute(claim, run_id) == "UPDATE 1"
    await eventually(lambda: not presence.sure_of(run_id))
    return run_id, host.roster.find(run_id)._live  # type: ignore[union-attr]


async def beats(host: Host, times: int) -> None:
    for _ in range(times):
        assert host.bench.presence.beat is not None
        await host.bench.presence.beat()


async def test_that_its_stream_has_not_moved_yet_is_no_leave_for_an_effect(
    host_of: OpenHost, pool: asyncpg.Pool
) -> None:
    """Between a claim and the closing that it is for, the stream looks as if nothing had happened."""
    host = await host_of(SETTINGS)
    run_id, live = await claimed(host, pool)
    making_sure = asyncio.create_task(make_sure(live, host.bench))
    await beats(host, 3)
    assert not making_sure.done()
    await append(host.services.log, run_id, ORPHANED, after=live.run.version)
    with pytest.raises(Fenced):
        await making_sure


async def test_a_run_that_was_let_go_is_the_hosts_again(host_of: OpenHost, pool: asyncpg.Pool) -> None:
    """RECON-2: its next heartbeat vouches for it, and nobody can claim it then."""
    host = await host_of(SETTINGS)
    run_id, live = await claimed(host, pool)
    making_sure = asyncio.create_task(make_sure(live, host.bench))
    await beats(host, 2)
    await pool.execute("DELETE FROM run_heartbeats WHERE run_id = $1", run_id)
    await making_sure
    assert host.bench.presence.sure_of(run_id)


async def test_a_host_that_fell_into_doubt_while_it_connected_sends_nothing(
    host_of: OpenHost, pool: asyncpg.Pool, upstream: Upstream, http: HttpSession
) -> None:
    """EVENT-3: it was stopped between its look and its connection, and its run was closed meanwhile."""
    host = await host_of(SETTINGS)
    run_id = await start(host, "a")
    await follow(host, run_id, e.ModelCallStarted)
    live = host.roster.find(run_id)._live  # type: ignore[union-attr]
    presence, adapter = host.bench.presence, adapter_of("openai", upstream.url, http)
    presence.on_doubt = None  # who also looks, and would stop the run's actor first
    asked = asyncio.Event()

    async def call(may_send: MaySend) -> ModelReply:
        def after_a_stop() -> bool:
            now = elapsed_s()
            presence.beaten(presence.call_roll(), [run_id], asked_at=now, answered_at=now)
            asked.set()
            return may_send()

        return await adapter.complete(asking("text"), after_a_stop)

    calling = asyncio.create_task(call_as_owner(live, host.bench, call))
    await asked.wait()
    await append(host.services.log, run_id, ORPHANED, after=live.run.version)
    with pytest.raises(Fenced):
        await calling
    assert not upstream.log.of("text")


async def test_a_call_that_was_held_back_is_made_when_the_run_is_the_hosts_after_all(
    host_of: OpenHost, upstream: Upstream, http: HttpSession
) -> None:
    """RECON-2: a doubt alone fails no call."""
    host = await host_of(SETTINGS)
    run_id = await start(host, "a")
    await follow(host, run_id, e.ModelCallStarted)
    live = host.roster.find(run_id)._live  # type: ignore[union-attr]
    adapter, answers = adapter_of("openai", upstream.url, http), iter([False])

    async def call(may_send: MaySend) -> ModelReply:
        return await adapter.complete(asking("text"), lambda: next(answers, None) is None and may_send())

    reply = await call_as_owner(live, host.bench, call)
    assert reply.message.content == "Hello there you."
    assert len(upstream.log.of("text")) == 1
