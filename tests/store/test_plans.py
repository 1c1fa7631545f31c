"""The statements of the hot paths touch the rows they are about and no more, however large the log is."""

from collections.abc import Callable
from uuid import UUID, uuid4

import asyncpg
import pytest

from app.store.sql import sql

GROWN = 20_000

Arguments = Callable[[UUID, int], tuple[object, ...]]
"""Of a statement, for a stream and the version that it is about."""

_GROW = """
INSERT INTO stored_events (originator_id, originator_version, topic, state)
SELECT gen_random_uuid(), 1, 'text.delta.v1', '{}' FROM generate_series(1, $1)
"""
_SCANS = "SELECT seq_scan, idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'stored_events'"


def append(stream: UUID, version: int) -> tuple[object, ...]:
    followed = ([stream], [version - 1]) if version > 1 else ([], [])
    return (False, None, *followed, [stream], [version], ["text.delta.v1"], [b"{}"], ["default"])


def append_apart(stream: UUID, version: int) -> tuple[object, ...]:
    return (False, None, [0], [True], [stream], [version], ["text.delta.v1"], [b"{}"], ["default"])


def read_stream(stream: UUID, version: int) -> tuple[object, ...]:
    return (stream, version - 2, 200)


def read_stream_page(stream: UUID, version: int) -> tuple[object, ...]:
    return (stream, version - 2, 200, 1 << 20)


def read_last(stream: UUID, _: int) -> tuple[object, ...]:
    return (stream,)


def read_streams(stream: UUID, version: int) -> tuple[object, ...]:
    return ([stream, uuid4()], [version - 2, 0], 100)


def read_page(_: UUID, version: int) -> tuple[object, ...]:
    return (version, 20, 1 << 20)


def end_position(_: UUID, _version: int) -> tuple[object, ...]:
    return ()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("append", append),
        ("append_apart", append_apart),
        ("read_stream", read_stream),
        ("read_stream_page", read_stream_page),
        ("read_last", read_last),
        ("read_streams", read_streams),
        ("read_page", read_page),
        ("end_position", end_position),
    ],
)
async def test_a_statement_reads_by_index_and_little(
    pool: asyncpg.Pool, name: str, arguments: Arguments
) -> None:
    """Also when its plan was made while the log was empty, as in a new installation that lives on."""
    stream = uuid4()
    async with pool.acquire() as connection:
        for version in range(1, 9):  # enough for Postgres to settle on a plan for good
            await connection.fetch(sql(name), *arguments(stream, version))
            if not name.startswith("append"):
                await connection.fetch(sql("append"), *append(stream, version))
        await connection.execute(_GROW, GROWN)
        async with connection.transaction():
            [before] = await connection.fetch(_SCANS)
            await connection.fetch(sql(name), *arguments(stream, 9))
            [after] = await connection.fetch(_SCANS)
    assert after["seq_scan"] - before["seq_scan"] == 0
    assert after["idx_tup_fetch"] - before["idx_tup_fetch"] <= 25


async def test_the_log_carries_no_index_that_nothing_needs(pool: asyncpg.Pool) -> None:
    """Every index is paid for with each append."""
    rows = await pool.fetch(
        "SELECT indexrelid::regclass::text FROM pg_index WHERE indrelid = 'stored_events'::regclass"
    )
    assert {row[0] for row in rows} == {"stored_events_one_writer", "stored_events_notification_id_idx"}


async def test_positions_are_drawn_one_by_one(pool: asyncpg.Pool) -> None:
    """EVENT-5 rests on it: a connection that keeps drawn positions for later would break their order."""
    [row] = await pool.fetch(
        "SELECT cache_size, increment_by FROM pg_sequences"
        " WHERE sequencename = 'stored_events_notification_id_seq'"
    )
    assert tuple(row) == (1, 1)
