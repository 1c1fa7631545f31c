"""The database and the event log of a host."""

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg

from app.db import embedded
from app.db.pool import closing_pool, connect, is_pooled
from app.metrics import Metrics
from app.settings import StoreSettings
from app.settings.errors import Problem, SettingsError
from app.store.event_log import EventLog
from app.store.mapper import EventMapper
from app.supervision.cancels import CHANNEL as CANCELS
from projections.jobs import CHANNEL as JOBS


@asynccontextmanager
async def open_database(dsn: str | None, data_dir: Path) -> AsyncIterator[str]:
    """The DSN to use: the given one, or that of a server in `data_dir`, which stops after its last user."""
    if dsn is not None:
        yield dsn
        return
    server = await embedded.start(data_dir)
    try:
        yield server.dsn()
    finally:
        await server.close()


@asynccontextmanager
async def open_log(dsn: str, store: StoreSettings) -> AsyncIterator[EventLog]:
    """The log alone, for commands that read it. Nothing is migrated."""
    async with closing_pool(dsn) as pool, event_log_at(dsn, pool, store, Metrics()) as event_log:
        yield event_log


@asynccontextmanager
async def event_log_at(
    dsn: str, pool: asyncpg.Pool, store: StoreSettings, metrics: Metrics
) -> AsyncIterator[EventLog]:
    """The log of a migrated database, open for as long as the block lasts."""
    # LISTEN does not pass a pooler in transaction mode.
    direct = store.direct_dsn or (None if is_pooled(dsn) else dsn)
    listen_on = None if direct is None else (lambda: connect(direct))
    async with EventLog(
        pool,
        lambda: connect(dsn),
        _mapper(store, os.environ),
        listen=listen_on,
        channels=(CANCELS, JOBS),
        strict=store.strict,
        metrics=metrics,
    ) as event_log:
        yield event_log


def _mapper(store: StoreSettings, environ: Mapping[str, str]) -> EventMapper:
    if store.encryption_key_env is None:
        return EventMapper(compress=store.compress)
    try:
        return EventMapper(compress=store.compress, key=environ[store.encryption_key_env])
    except KeyError:
        reason = f"the environment variable {store.encryption_key_env} is not set"
    except ValueError as error:
        reason = f"{store.encryption_key_env}: {error}"
    raise SettingsError([Problem(source="environment", key="store.encryption_key_env", reason=reason)])
