"""Pools, codecs, and what the driver's errors become."""

import asyncio
from collections.abc import Callable

import asyncpg
import pytest

from app.db import pool as pools
from app.db.embedded import EmbeddedPostgres
from app.db.errors import DatabaseUnusable, StoreUnavailable
from app.db.pool import connect, connect_args, database_time, open_pool, server_version, translated

NOWHERE = "postgresql://postgres@127.0.0.1:1/none"


async def test_json_is_python_values_both_ways(pool: asyncpg.Pool) -> None:
    assert await pool.fetchval("SELECT $1::jsonb", {"a": [1, None]}) == {"a": [1, None]}
    assert await pool.fetchval("SELECT $1::json", "text") == "text"


async def test_a_connection_says_whose_it_is(pool: asyncpg.Pool) -> None:
    assert await pool.fetchval("SHOW application_name") == "tracon"


async def test_a_transaction_left_open_does_not_reach_the_next_user(database: str) -> None:
    async with await open_pool(database, min_size=1, max_size=1) as pool:
        async with pool.acquire() as careless:
            await careless.execute("BEGIN; CREATE TABLE left_open (id int)")
        assert await pool.fetchval("SELECT to_regclass('left_open')") is None


async def test_a_host_that_is_frozen_in_a_transaction_keeps_its_locks_for_a_while_only(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """EVENT-6: it is alive, so its connection does not end by itself, and others wait for what it has."""
    monkeypatch.setattr(pools, "_STILL_S", 0.2)
    frozen, other = await connect(database), await connect(database)
    try:
        await frozen.execute("BEGIN; SELECT pg_advisory_xact_lock(7)")
        async with asyncio.timeout(10):
            await other.execute("SELECT pg_advisory_xact_lock(7)")
        with pytest.raises(StoreUnavailable), translated():
            await frozen.execute("COMMIT")
    finally:
        frozen.terminate()
        await other.close()


@pytest.mark.parametrize(
    ("dsn", "bare"),
    [
        ("postgresql://u@a,b:5/db?pgbouncer=true", "postgresql://u@a,b:5/db"),
        ("postgresql://u@h/db?x=1&pgbouncer=true&host=%2Fs", "postgresql://u@h/db?x=1&host=%2Fs"),
    ],
)
def test_through_a_pooler_no_statement_is_kept_on_a_connection(dsn: str, bare: str) -> None:
    arguments = connect_args(dsn)
    assert arguments["dsn"] == bare
    assert arguments["statement_cache_size"] == 0
    assert list(arguments["server_settings"]) == ["application_name"], (
        "a pooler refuses what it does not know"
    )


@pytest.mark.parametrize("query", ["", "?pgbouncer=false"])
def test_without_a_pooler_statements_are_kept(query: str) -> None:
    arguments = connect_args(f"postgresql://u@h/db{query}")
    assert arguments["dsn"] == "postgresql://u@h/db"
    assert "statement_cache_size" not in arguments


async def test_the_first_host_that_takes_writes_is_used(postgres: EmbeddedPostgres) -> None:
    here = postgres.connect_args()["host"]
    dsn = f"postgresql://postgres@/postgres?host=/nowhere,{here}&port=5432,5432"
    connection = await connect(f"{dsn}&target_session_attrs=read-write")
    assert await connection.fetchval("SELECT 1") == 1
    await connection.close()


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    with pytest.raises(StoreUnavailable):
        await connect(NOWHERE)
    with pytest.raises(StoreUnavailable):
        await open_pool(NOWHERE)


async def test_a_database_that_does_not_exist_is_unusable(postgres: EmbeddedPostgres) -> None:
    with pytest.raises(DatabaseUnusable, match='"nothing" does not exist'):
        await open_pool(postgres.dsn("nothing"))


async def test_a_closed_pool_is_unavailable(database: str) -> None:
    pool = await open_pool(database, min_size=1)
    await pool.close()
    with pytest.raises(StoreUnavailable), translated():
        await pool.fetchval("SELECT 1")


async def test_a_host_that_asks_while_the_database_goes_away_is_told_that_it_is_unavailable(
    database: str,
) -> None:
    """EVENT-8: so that a start at such a moment says so in a line and can be made again."""
    pool = await open_pool(database, min_size=1)
    assert (await server_version(pool)).split(".")[0].isdigit()
    await pool.close()
    for ask in (server_version, database_time):
        with pytest.raises(StoreUnavailable):
            await ask(pool)


async def test_a_connection_ended_by_the_server_is_unavailable(database: str) -> None:
    mine, other = await connect(database), await connect(database)
    await other.execute("SELECT pg_terminate_backend($1)", mine.get_server_pid())
    with pytest.raises(StoreUnavailable), translated():
        await mine.fetchval("SELECT 1")
    await other.close()


async def test_a_server_that_takes_no_writes_is_unavailable(pool: asyncpg.Pool) -> None:
    async with pool.acquire() as connection, connection.transaction(readonly=True):
        with pytest.raises(StoreUnavailable), translated():
            await connection.execute("CREATE TABLE t ()")


@pytest.mark.parametrize(
    "error",
    [
        lambda: TimeoutError(),
        lambda: ConnectionRefusedError(111, "refused"),
        lambda: asyncpg.InternalClientError("cannot switch to state 15"),
        lambda: asyncpg.TargetServerAttributeNotMatched("none of the hosts match"),
        lambda: asyncpg.CannotConnectNowError("starting up"),
        lambda: asyncpg.ConnectionDoesNotExistError("connection was closed"),
        lambda: asyncpg.TooManyConnectionsError("sorry, too many clients already"),
    ],
)
def test_whatever_says_not_now_is_unavailable(error: Callable[[], Exception]) -> None:
    cause = error()
    with pytest.raises(StoreUnavailable) as caught, translated():
        raise cause
    assert caught.value.__cause__ is cause


async def test_a_cancellation_that_the_driver_has_swallowed_is_one_all_the_same() -> None:
    """Else whoever asked for the task's end would wait for it for ever: it would only try again."""
    begun = asyncio.Event()

    async def broken_while_cancelled() -> None:
        with translated():
            try:
                begun.set()
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                raise asyncpg.ConnectionDoesNotExistError("connection was closed") from None

    task = asyncio.create_task(broken_while_cancelled())
    await begun.wait()
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


async def test_a_time_limit_within_is_no_cancellation() -> None:
    with pytest.raises(StoreUnavailable), translated():
        async with asyncio.timeout(0):
            await asyncio.Event().wait()


async def test_our_own_mistakes_stay_what_they_are(pool: asyncpg.Pool) -> None:
    with pytest.raises(asyncpg.UndefinedTableError), translated():
        await pool.fetchval("SELECT * FROM nothing")
    with pytest.raises(asyncpg.DataError), translated():
        await pool.fetchval("SELECT $1::int", "one")
    with pytest.raises(asyncpg.ClientConfigurationError), translated():
        await asyncpg.connect("nonsense://h")
