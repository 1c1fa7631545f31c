"""What a host asks its database on behalf of a request."""

from collections.abc import Iterator
from contextlib import contextmanager

import asyncpg
import pytest

from app.db import pool as pools
from projections.sql import sql

STREAM, KEY, IDEMPOTENCY, APPEND = "stream", "key", "idempotency", "append"
"""A stream is followed by its id."""

_MARKS = {
    "WHERE originator_id = $1": STREAM,
    "FROM api_keys": KEY,
    "FROM idempotency": IDEMPOTENCY,
    "tracon_append": APPEND,
}
_BY_THEMSELVES = (sql("touched_idempotency"), sql("unsettled_idempotency"))
"""The view that is kept up to date, and the sweep. Whether they come in between is a matter of chance."""


class Queries:
    """The statements of connections that are opened after `watch`, by what they are about.

    What views and other duties do by themselves is left out.
    """

    def __init__(self) -> None:
        self._seen: list[str] = []

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Hosts that are opened from here on are listened to."""
        set_codecs = pools.set_codecs

        async def listening(connection: asyncpg.Connection) -> None:
            await set_codecs(connection)
            connection.add_query_logger(self._note)

        monkeypatch.setattr(pools, "set_codecs", listening)

    @contextmanager
    def made(self) -> Iterator[list[str]]:
        """What was asked in the block, once it has ended."""
        made: list[str] = []
        before = len(self._seen)
        yield made
        made += self._seen[before:]

    def _note(self, logged: asyncpg.connection.LoggedQuery) -> None:
        if logged.query in _BY_THEMSELVES:
            return
        names = [name for mark, name in _MARKS.items() if mark in logged.query]
        self._seen += [f"{name} {logged.args[0]}" if name == STREAM else name for name in names]


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> Queries:
    """Ask for it before the hosts."""
    listening = Queries()
    listening.watch(monkeypatch)
    return listening
