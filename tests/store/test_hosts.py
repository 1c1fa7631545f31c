"""Several hosts, each with a log of its own, on one database."""

import asyncio
from collections import Counter

import asyncpg

from app.store.event_log import Change, EventLog, VersionConflict
from domain.ids import StreamId
from tests.store.conftest import OpenLog
from tests.store.samples import PATIENCE_S, change, stream, texts


async def test_of_two_hosts_that_race_for_a_version_one_wins(open_log: OpenLog) -> None:
    """EVENT-1, EVENT-3: one writer per version, and the other is told."""
    hosts: list[EventLog] = [await open_log() for _ in range(2)]
    for _ in range(20):
        run = stream()
        outcomes = await asyncio.gather(
            *(host.append(change(run, 0, str(n))) for n, host in enumerate(hosts)), return_exceptions=True
        )
        assert sorted(type(one).__name__ for one in outcomes) == ["VersionConflict", "list"]
        winner = next(n for n, one in enumerate(outcomes) if isinstance(one, list))
        assert texts(await hosts[0].read_stream(run)) == [str(winner)]


async def test_overlapping_batches_wait_for_each_other_and_never_deadlock(
    open_log: OpenLog, pool: asyncpg.Pool
) -> None:
    """Each append spans two streams, named in whatever order; the rows go in one order on every host."""
    hosts: list[EventLog] = [await open_log() for _ in range(3)]
    streams = [stream() for _ in range(8)]
    won: Counter[StreamId] = Counter()

    async def race(number: int) -> None:
        host, one, other = hosts[number % 3], streams[number % 8], streams[(number * 3 + 1) % 8]
        for _ in range(12):
            changes = [await _next(host, one, number), await _next(host, other, number)]
            try:
                await host.append(*changes[:: 1 if number % 2 else -1])
            except VersionConflict:
                continue
            won.update((one, other))

    async with asyncio.timeout(3 * PATIENCE_S):
        await asyncio.gather(*(race(number) for number in range(24)))
    rows = await pool.fetch(
        "SELECT originator_id, count(*), min(originator_version), max(originator_version)"
        " FROM stored_events GROUP BY originator_id"
    )
    assert {row[0]: row[1] for row in rows} == won
    assert all((row[2], row[3]) == (1, row[1]) for row in rows), "a stream has a gap"
    query = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    assert await pool.fetchval(query) == 0


async def _next(host: EventLog, stream_id: StreamId, number: int) -> Change:
    known = await host.read_stream(stream_id)
    return change(stream_id, known[-1].sequence if known else 0, str(number))
