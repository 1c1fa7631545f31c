"""Telling callers that Postgres cannot be reached, in the terms of the domain."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg

from domain.errors import Unavailable

_NOT_NOW = (
    OSError,  # TimeoutError is one of these
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # what the driver says of a connection that broke between two statements
    asyncpg.TargetServerAttributeNotMatched,
    asyncpg.OperatorInterventionError,
    asyncpg.InsufficientResourcesError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.IdleSessionTimeoutError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)


class ViewsUnavailable(Unavailable):
    """Postgres cannot be reached, or hung up. Nothing was changed; try again."""

    code = "store_unavailable"


@contextmanager
def told_as_unavailable() -> Iterator[None]:
    """Turn the driver's ways of saying "not now" into ViewsUnavailable. Every other error passes."""
    try:
        yield
    except _NOT_NOW as error:
        heed_cancellation(error)
        if isinstance(error, ValueError):
            raise  # a wrong argument of ours: asyncpg files those under InterfaceError too
        raise ViewsUnavailable(f"the views cannot be read: {str(error) or type(error).__name__}") from error


def heed_cancellation(instead: BaseException) -> None:
    """Raise the cancellation that the driver has swallowed, if it has.

    Where a connection breaks at the moment of a cancellation, the driver reports the break and nothing else.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError from instead
