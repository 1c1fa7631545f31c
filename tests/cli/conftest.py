"""One running service for all tests that leave it as it was."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

import pytest

from app.db.embedded import EmbeddedPostgres
from tests.cli.command import DEMO, Service, serving
from tests.conftest import TEMPLATE, cloned


@dataclass(frozen=True)
class Demo:
    """The demo's service and the database that it writes to."""

    service: Service
    dsn: str


@pytest.fixture(scope="session")
def demo(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    clone = cloned(postgres, TEMPLATE)
    with asyncio.Runner() as runner:
        dsn = runner.run(_next(clone))
        assert dsn is not None
        with serving(*DEMO, "--dsn", dsn, log=tmp_path_factory.mktemp("demo") / "log") as service:
            yield Demo(service, dsn)
        runner.run(_next(clone))


async def _next(clone: AsyncIterator[str]) -> str | None:
    return await anext(clone, None)
