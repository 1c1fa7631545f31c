"""Appending events: our group commit, the `eventsourcing` package's own recorder, and pgbench, on one server.

    python -m ops.bench append

One event of about 400 bytes per append. Ours: 64 callers, one writer, in a process set up like a host's. The
package's: its default Postgres recorder, 16 threads. pgbench: one connection that inserts batches as large as
ours came out, in one statement each that carries the rows, into a table of the same columns and indexes: what
disk and server give when no event log is asked of them.
"""

import asyncio
import re
import subprocess
import tempfile
import threading
import time
from collections.abc import Coroutine
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import uuid4

import asyncpg
from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresApplicationRecorder, PostgresDatastore

from app.db import embedded
from app.db.binaries import find_binaries
from app.db.embedded import EmbeddedPostgres
from app.db.migrate import migrate
from app.db.pool import closing_pool, connect
from app.metrics import Metrics
from app.process import new_event_loop, settle_heap
from app.store.event_log import Change, EventLog
from domain.events import TextDelta
from domain.ids import StreamId, Version
from ops.bench.report import interleaved, ratio, spread, table

CALLERS = 64
THREADS = 16
SECONDS = 2.0
TEXT = "x" * 350


def run(rounds: int = 5) -> None:
    """Measure in turns and print the table."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        server = asyncio.run(embedded.start(Path(folder) / "data"))
        try:
            _compare(server, rounds)
        finally:
            asyncio.run(server.close())


def _compare(server: EmbeddedPostgres, rounds: int) -> None:
    dsn = asyncio.run(_database(server))
    batches: list[float] = []
    ours, library, plain = interleaved(
        rounds,
        lambda: _as_a_host(_ours(dsn, batches)),
        lambda: _library(server, dsn),
        lambda: _pgbench(server, max(1, round(batches[-1]))),
    )
    table(
        f"Appending, events/s: median (least..most) of {rounds} rounds of {SECONDS:g} s",
        ("writer", "events/s", "ours / it"),
        (
            (f"Tracon, {CALLERS} callers, {batches[-1]:.0f} events a batch", spread(ours), "1"),
            (f"eventsourcing, {THREADS} threads", spread(library), f"{ratio(ours, library):.1f}"),
            (f"pgbench, {batches[-1]:.0f} rows a statement", spread(plain), f"{ratio(ours, plain):.2f}"),
        ),
    )


async def _database(server: EmbeddedPostgres) -> str:
    connection = await asyncpg.connect(server.dsn())
    await connection.execute("CREATE DATABASE bench")
    await connection.close()
    dsn = server.dsn("bench")
    await migrate(dsn)
    connection = await asyncpg.connect(dsn)
    await connection.execute("CREATE SCHEMA library")
    await connection.execute("CREATE TABLE plain (LIKE stored_events INCLUDING ALL)")
    await connection.close()
    return dsn


def _as_a_host(work: Coroutine[Any, Any, float]) -> float:
    settle_heap()
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(work)


async def _ours(dsn: str, batches: list[float]) -> float:
    metrics = Metrics()
    async with closing_pool(dsn) as pool, EventLog(pool, partial(connect, dsn), metrics=metrics) as log:
        end = time.perf_counter() + SECONDS
        counts = await asyncio.gather(*(_append_until(log, end) for _ in range(CALLERS)))
    samples = {
        s.name: s.value for metric in metrics.append_events.collect() for s in metric.samples if not s.labels
    }
    batches.append(samples["tracon_append_events_sum"] / samples["tracon_append_events_count"])
    return sum(counts) / SECONDS


async def _append_until(log: EventLog, end: float) -> int:
    stream, version = StreamId(uuid4()), 0
    while time.perf_counter() < end:
        event = TextDelta(step=1, text=TEXT)
        await log.append(
            Change(stream_id=stream, expected=Version(version), tenant="default", events=(event,))
        )
        version += 1
    return version


def _library(server: EmbeddedPostgres, dsn: str) -> float:
    datastore = PostgresDatastore(
        dbname=urlsplit(dsn).path[1:],
        host=str(server.connect_args()["host"]),
        port=str(server.connect_args()["port"]),
        user="postgres",
        password="",
        schema="library",
        pool_size=THREADS,
        max_overflow=0,
    )
    recorder = PostgresApplicationRecorder(datastore)
    recorder.create_table()
    end = time.perf_counter() + SECONDS
    counts = [0] * THREADS
    state = TEXT.encode()

    def append(place: int) -> None:
        stream, version = uuid4(), 0
        while time.perf_counter() < end:
            version += 1
            recorder.insert_events([StoredEvent(stream, version, "text.delta.v1", state)])
        counts[place] = version

    threads = [threading.Thread(target=append, args=(place,)) for place in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    datastore.close()
    return sum(counts) / SECONDS


def _pgbench(server: EmbeddedPostgres, rows: int) -> float:
    row = f"(gen_random_uuid(), 1, 'text.delta.v1', '{TEXT}', 'default')"
    statement = (  # the values are constants of this file
        "INSERT INTO plain (originator_id, originator_version, topic, state, tenant_id) VALUES "
        f"{', '.join([row] * rows)};"
    )
    query = parse_qs(urlsplit(server.dsn()).query)
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as script:
        script.write(statement)
        script.flush()
        answer = subprocess.run(
            [
                str(find_binaries().folder / "pgbench"),
                *("-h", query["host"][0], "-p", query["port"][0], "-U", "postgres"),
                *("-n", "-M", "simple", "-c", "1", "-T", str(round(SECONDS)), "-f", script.name, "bench"),
            ],
            capture_output=True,
            text=True,
            check=True,
        )
    found = re.search(r"tps = ([\d.]+)", answer.stdout)
    if found is None:
        raise RuntimeError(f"pgbench said nothing of its speed: {answer.stdout}")
    return float(found[1]) * rows
