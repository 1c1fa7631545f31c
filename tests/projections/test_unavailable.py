"""What a reader of views is told when Postgres is away, whatever words the driver has for it."""

import asyncpg
import pytest

from app.db.errors import StoreUnavailable
from app.db.pool import translated
from projections.unavailable import ViewsUnavailable, told_as_unavailable

NOT_NOW = (
    ConnectionRefusedError("so it says"),
    TimeoutError("so it says"),
    asyncpg.ConnectionDoesNotExistError("so it says"),
    asyncpg.InterfaceError("connection is closed"),
    asyncpg.InternalClientError("cannot switch to state 15; another operation (2) is in progress"),
    asyncpg.TargetServerAttributeNotMatched("no host takes writes"),
    asyncpg.CannotConnectNowError("so it says"),
    asyncpg.AdminShutdownError("so it says"),
    asyncpg.CrashShutdownError("so it says"),
    asyncpg.TooManyConnectionsError("so it says"),
    asyncpg.ReadOnlySQLTransactionError("so it says"),
    asyncpg.IdleSessionTimeoutError("so it says"),
)


@pytest.mark.parametrize("error", NOT_NOW, ids=lambda error: type(error).__name__)
async def test_views_are_unavailable_exactly_when_the_log_is(error: Exception) -> None:
    """EVENT-8: a loop that reads views waits for the database to come back. What it is not told ends it."""
    with pytest.raises(StoreUnavailable), translated():
        raise error
    with pytest.raises(ViewsUnavailable), told_as_unavailable():
        raise error


@pytest.mark.parametrize(
    "error",
    [asyncpg.UndefinedTableError("so it says"), asyncpg.exceptions.DataError("so it says")],
    ids=lambda e: type(e).__name__,
)
async def test_a_wrong_query_is_a_wrong_query(error: Exception) -> None:
    with pytest.raises(type(error)), told_as_unavailable():
        raise error
