"""Servers of a test's own: starting them, asking them, and waiting for their end."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import asyncpg

from app.db import embedded, postmaster
from app.db.embedded import EmbeddedPostgres
from app.db.errors import StoreUnavailable
from app.db.locks import FileLock
from app.db.pool import translated

FAST = {"fsync": "off"}
PATIENCE_S = 30.0


async def start(home: Path, settings: Mapping[str, str] = FAST) -> EmbeddedPostgres:
    return await embedded.start(home, settings=settings)


async def query(server: EmbeddedPostgres, sql: str) -> object:
    connection = await asyncpg.connect(server.dsn())
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()


def server_pid(home: Path) -> int:
    found = postmaster.find(home / "cluster")
    assert found, "no server runs"
    return found.pid


def keeper_pid(home: Path) -> int:
    asked = subprocess.run(
        ["ps", "-o", "ppid=", "-p", str(server_pid(home))], capture_output=True, text=True, check=True
    )
    return int(asked.stdout)


async def nobody_keeps(home: Path) -> None:
    with FileLock(home / "keeper.lock") as keeper:
        await keeper.exclusive(time.monotonic() + PATIENCE_S)


async def nothing_runs(home: Path) -> None:
    await nobody_keeps(home)
    async with asyncio.timeout(PATIENCE_S):
        while postmaster.find(home / "cluster"):
            await asyncio.sleep(0.01)


@contextmanager
def user_process(home: Path, *arguments: Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.db.user_process", str(home), *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


async def said(process: "subprocess.Popen[str]") -> str:
    assert process.stdout
    return (await asyncio.to_thread(process.stdout.readline)).strip()


def let_go(process: "subprocess.Popen[str]") -> None:
    assert process.stdin
    process.stdin.close()


async def succeeds(attempt: Callable[[], Awaitable[object]]) -> object:
    """What the attempt returns once the store is available again."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                with translated():
                    return await attempt()
            except StoreUnavailable:
                await asyncio.sleep(0.01)
