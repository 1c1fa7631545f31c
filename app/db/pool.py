"""Connections to Postgres, and the translation of what the driver raises into our own errors."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import datetime
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg
import msgspec

from app.db.errors import DatabaseUnusable, StoreUnavailable

APPLICATION_NAME = "tracon"

_CONNECT_TIMEOUT_S = 10.0
_COMMAND_TIMEOUT_S = 30.0
_CLOSE_TIMEOUT_S = 5.0
_STILL_S = 15.0
"""A host that is frozen in the middle of a transaction holds its locks until Postgres takes it for gone."""

_UNAVAILABLE = (
    OSError,  # TimeoutError is one of these
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.TargetServerAttributeNotMatched,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.IdleSessionTimeoutError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
_UNUSABLE = (
    asyncpg.InvalidAuthorizationSpecificationError,
    asyncpg.InvalidCatalogNameError,
    asyncpg.ProtocolViolationError,
)


def connect_args(dsn: str, *, command_timeout_s: float | None = _COMMAND_TIMEOUT_S) -> dict[str, Any]:
    """Keyword arguments for asyncpg's `connect` and `create_pool`.

    Several hosts and `target_session_attrs` work as they do everywhere. `pgbouncer=true` says that a
    pooler in transaction mode stands in between: nothing then outlives a transaction on the server.
    """
    bare, pooled = _without_pgbouncer(dsn)
    arguments: dict[str, Any] = {
        "dsn": bare,
        "timeout": _CONNECT_TIMEOUT_S,
        "command_timeout": command_timeout_s,
        "server_settings": {"application_name": APPLICATION_NAME},
    }
    if pooled:
        arguments["statement_cache_size"] = 0
    else:  # a pooler takes no such word; it has a limit of its own, PgBouncer's idle_transaction_timeout
        still_ms = str(round(_STILL_S * 1000))
        arguments["server_settings"]["idle_in_transaction_session_timeout"] = still_ms
    return arguments


async def connect(dsn: str, *, command_timeout_s: float | None = _COMMAND_TIMEOUT_S) -> asyncpg.Connection:
    """One connection of its own, with our codecs. The caller closes it. Raises StoreUnavailable."""
    with translated():
        connection: asyncpg.Connection = await asyncpg.connect(
            **connect_args(dsn, command_timeout_s=command_timeout_s)
        )
        try:
            await set_codecs(connection)
        except BaseException:
            connection.terminate()
            raise
        return connection


async def open_pool(dsn: str, *, min_size: int = 2, max_size: int = 10) -> asyncpg.Pool:
    """An open pool; the caller closes it. Raises StoreUnavailable or DatabaseUnusable.

    A connection goes back as it came: what uses one with SET or a session lock undoes that itself.
    """
    with translated():
        return await asyncpg.create_pool(
            **connect_args(dsn), min_size=min_size, max_size=max_size, init=set_codecs, reset=_no_reset
        )


@asynccontextmanager
async def closing_pool(dsn: str, *, max_size: int = 16) -> AsyncIterator[asyncpg.Pool]:
    """A pool for as long as the block lasts. One that does not close in time is cut off."""
    pool = await open_pool(dsn, max_size=max_size)
    try:
        yield pool
    finally:
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await pool.close()
        except TimeoutError:
            pool.terminate()


async def database_time(pool: asyncpg.Pool) -> datetime:
    """The only clock that decides anything. Raises StoreUnavailable."""
    with translated():
        now: datetime = await pool.fetchval("SELECT clock_timestamp()")
    return now


async def server_version(pool: asyncpg.Pool) -> str:
    """Of Postgres, as it says itself. Raises StoreUnavailable."""
    with translated():
        told: str = await pool.fetchval("SHOW server_version")
    return told


def is_pooled(dsn: str) -> bool:
    """Whether the DSN says that a pooler in transaction mode stands in between."""
    return _without_pgbouncer(dsn)[1]


async def set_codecs(connection: asyncpg.Connection) -> None:
    """Let jsonb and json be Python values."""
    for name in ("json", "jsonb"):
        await connection.set_type_codec(
            name, schema="pg_catalog", encoder=_to_json, decoder=msgspec.json.decode
        )


@contextmanager
def translated() -> Iterator[None]:
    """Turn the driver's ways of saying "not now" into StoreUnavailable. Every other error passes.

    A cancellation that the driver has swallowed is raised all the same. Where a connection breaks at that
    moment it reports the break instead, and who waits for the task's end would wait for ever.
    """
    try:
        yield
    except _UNUSABLE as error:
        _heed_cancellation(error)
        raise DatabaseUnusable(f"Postgres refuses us: {error}") from error
    except _UNAVAILABLE as error:
        _heed_cancellation(error)
        if isinstance(error, ValueError):
            raise  # a wrong argument of ours: asyncpg files those under InterfaceError too
        raise StoreUnavailable(f"Postgres is not available: {str(error) or type(error).__name__}") from error


def _heed_cancellation(instead: BaseException) -> None:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        return  # nothing is asynchronous here
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from instead


async def _no_reset(_: object) -> None:
    # The default reset drops session locks and settings; behind a pooler, those of somebody else.
    # Leaving it out also halves the round trips.
    return


def _to_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _without_pgbouncer(dsn: str) -> tuple[str, bool]:
    parts = urlsplit(dsn)
    query = parse_qsl(parts.query, keep_blank_values=True)
    kept = [(name, value) for name, value in query if name != "pgbouncer"]
    pooled = ("pgbouncer", "true") in query
    return (urlunsplit(parts._replace(query=urlencode(kept))) if len(kept) < len(query) else dsn), pooled
