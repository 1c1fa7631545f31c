"""What every test may ask for: a database of its own on a real server, and a pool on it."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path

import asyncpg
import pytest

from app.db import embedded
from app.db.embedded import EmbeddedPostgres
from app.db.migrate import migrate
from app.db.pool import open_pool
from tests.hosts import host_of as host_of

TEMPLATE = "tracon_template"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    """One server for the session; its keeper is no child of any test's event loop."""
    server = asyncio.run(_serve(tmp_path_factory.mktemp("postgres")))
    yield server
    assert asyncio.run(server.close()), "somebody still uses the tests' server"


@pytest.fixture
async def empty_database(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """The DSN of a database in which nothing was made yet."""
    async for dsn in cloned(postgres, "template1"):
        yield dsn


@pytest.fixture
async def database(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """The DSN of a database of this test's own, with every migration applied."""
    async for dsn in cloned(postgres, TEMPLATE):
        yield dsn


@pytest.fixture
async def pool(database: str) -> AsyncIterator[asyncpg.Pool]:
    async with await open_pool(database, min_size=1) as opened:
        yield opened


async def _serve(directory: Path) -> EmbeddedPostgres:
    server = await embedded.start(
        directory, settings={"fsync": "off", "synchronous_commit": "on", "full_page_writes": "off"}
    )
    await _command(server, f"CREATE DATABASE {TEMPLATE}")
    await migrate(server.dsn(TEMPLATE))
    return server


async def cloned(server: EmbeddedPostgres, template: str) -> AsyncIterator[str]:
    name = f"test_{next(_numbers)}"
    await _command(server, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    yield server.dsn(name)
    await _command(server, f"DROP DATABASE {name} WITH (FORCE)")


async def _command(server: EmbeddedPostgres, sql: str) -> None:
    connection = await asyncpg.connect(server.dsn())
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test logged may hold halves of characters, and a report travels between processes as UTF-8."""
    report = yield
    report.sections = [
        (name, text.encode(errors="backslashreplace").decode()) for name, text in report.sections
    ]
    return report
