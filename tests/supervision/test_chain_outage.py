"""A run that goes on from others waits for a store that is away just then (EVENT-8, BUDGET-7)."""

import asyncio
from functools import partial

import asyncpg
import msgspec
import pytest

from app.db.errors import StoreUnavailable
from app.db.pool import connect, open_pool
from app.identity import new_run_id
from app.store.event_log import EventLog
from app.store.patience import patiently
from app.supervision.chain_reading import spent_before
from domain.budget import Spent
from domain.evolve import fold
from tests.domain.facts import CREATED, OPENED
from tests.store.conftest import proxy as proxy
from tests.store.proxy import Proxy
from tests.supervision.orphanage import append


async def test_what_a_chain_has_spent_is_read_once_the_store_is_back(
    database: str, pool: asyncpg.Pool, proxy: Proxy
) -> None:
    """That nobody can read it now is no word on the run, and ends it no sooner than any outage would."""
    before = new_run_id()
    async with EventLog(pool, partial(connect, database)) as log:
        await append(log, before, *OPENED)
    run = fold(new_run_id(), [msgspec.structs.replace(CREATED, continued_from_run_id=before)])
    async with await open_pool(proxy.dsn, min_size=1) as behind, EventLog(behind, proxy.connect) as log:
        await proxy.refuse()
        with pytest.raises(StoreUnavailable):
            await spent_before(log, run)
        reading = asyncio.create_task(patiently(partial(spent_before, log, run), 60.0))
        await proxy.accept()
        assert isinstance(await reading, Spent)
