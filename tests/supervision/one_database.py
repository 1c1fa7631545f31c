"""One database for all tests of a module that imports this. Their runs do not meet: each has its own id."""

from collections.abc import AsyncIterator

import pytest_asyncio

from app.db.embedded import EmbeddedPostgres
from tests.conftest import TEMPLATE, cloned


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def database(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    async for dsn in cloned(postgres, TEMPLATE):
        yield dsn
