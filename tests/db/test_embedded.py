"""One server for all its users, whatever happens to them and to it."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest
import uvloop

from app.db import embedded, postmaster, run_as
from app.db.binaries import find_binaries
from app.db.embedded import EmbeddedPostgres
from app.db.errors import DatabaseUnusable, StoreUnavailable
from app.db.locks import FileLock
from app.db.pool import open_pool, translated

FAST = {"fsync": "off"}
PATIENCE_S = 30.0


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """A place for a server of the test's own."""
    return tmp_path / "data"


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
        while postmaster.find(home / "cluster"):  # noqa: ASYNC110 - another process, no event
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


async def test_the_second_share_keeps_the_server_and_the_last_one_stops_it(home: Path) -> None:
    first = await start(home)
    pid = server_pid(home)
    second = await start(home)
    assert await first.close() is False
    assert await query(second, "SELECT 1") == 1
    assert server_pid(home) == pid
    assert await second.close() is True
    await nothing_runs(home)


async def test_data_is_there_after_a_restart(home: Path) -> None:
    first = await start(home)
    await query(first, "CREATE TABLE kept (id int)")
    await first.close()
    second = await start(home)
    assert await query(second, "SELECT count(*) FROM kept") == 0
    assert await second.close()


async def test_processes_that_start_at_once_share_one_server(home: Path) -> None:
    with user_process(home) as a, user_process(home) as b, user_process(home) as c, user_process(home) as d:
        pids = [await said(process) for process in (a, b, c, d)]
        assert pids == [str(server_pid(home))] * 4
        for process, last in ((a, "False"), (b, "False"), (c, "False"), (d, "True")):
            let_go(process)
            assert await said(process) == last
    await nothing_runs(home)


async def test_killing_the_only_user_stops_the_server(home: Path) -> None:
    with user_process(home) as process:
        assert await said(process) == str(server_pid(home))
        process.kill()
        await nothing_runs(home)


async def test_killing_one_user_leaves_the_server_to_the_other(home: Path) -> None:
    with user_process(home) as process:
        pid = await said(process)
        mine = await start(home)
        process.kill()
        process.wait()
        assert str(server_pid(home)) == pid
        assert await query(mine, "SELECT 1") == 1
        assert await mine.close() is True


async def started_at(pool: asyncpg.Pool, unlike: object = None) -> object:
    time_of_start = await pool.fetchval("SELECT pg_postmaster_start_time()")
    if time_of_start == unlike:
        raise StoreUnavailable("still the old server")
    return time_of_start


async def test_a_killed_server_comes_back_under_its_users(home: Path) -> None:
    server = await start(home)
    pool = await open_pool(server.dsn(), min_size=1, max_size=1)
    await pool.execute("CREATE TABLE kept AS SELECT 7 AS id")
    before = await started_at(pool)
    os.kill(server_pid(home), signal.SIGKILL)
    # A backend may go on for a moment after its server has died.
    assert await succeeds(lambda: started_at(pool, unlike=before)) != before
    assert await pool.fetchval("SELECT id FROM kept") == 7
    await pool.close()
    assert await server.close() is True


async def test_a_server_that_lost_its_keeper_is_replaced_by_the_next_start(home: Path) -> None:
    left = await start(home)
    pid = server_pid(home)
    os.kill(keeper_pid(home), signal.SIGKILL)
    await nobody_keeps(home)
    mine = await start(home)
    assert server_pid(home) != pid
    assert await query(mine, "SELECT 1") == 1
    assert await left.close() is False
    assert await mine.close() is True
    await nothing_runs(home)


async def test_what_was_acknowledged_survives_the_death_of_everything(home: Path) -> None:
    with user_process(home) as process:
        await said(process)
        mine = await start(home)
        await query(mine, "CREATE TABLE kept AS SELECT 7 AS id")
        keeper, server = keeper_pid(home), server_pid(home)
        for pid in (keeper, server, process.pid):
            os.kill(pid, signal.SIGKILL)
        await nothing_runs(home)
        again = await start(home)
        assert await query(again, "SELECT id FROM kept") == 7
        assert await mine.close() is False
        assert await again.close() is True


async def test_a_start_after_a_kill_in_initdb_begins_anew(home: Path, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    begun.chmod(0o666)
    with user_process(home, telling_programs(tmp_path / "bin", begun)) as process:
        await asyncio.to_thread(begun.read_bytes)  # returns when initdb has begun
        process.kill()
        process.wait()
    server = await start(home)
    assert await query(server, "SELECT 1") == 1
    assert await server.close()


def telling_programs(folder: Path, begun: Path) -> Path:
    """Programs like the real ones, except that initdb tells when it begins."""
    real = find_binaries().folder
    folder.mkdir()
    for program, first in (("postgres", ":"), ("initdb", f"echo begun > {begun}")):
        script = folder / program
        script.write_text(f'#!/bin/sh\n{first}\nexec {real}/{program} "$@"\n')
        script.chmod(0o755)
    return folder


async def test_it_starts_in_a_folder_that_nobody_else_may_enter(home: Path) -> None:
    home.mkdir(mode=0o700)
    server = await start(home / "deep" / "data")
    assert await query(server, "SELECT 1") == 1
    assert home.stat().st_mode & 0o777 == 0o700
    assert home.stat().st_uid == os.geteuid()
    assert await server.close()


async def test_a_user_namespace_does_where_capabilities_cannot_be_given(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_as, "_capabilities", lambda: ())
    possible = os.geteuid() != 0 or subprocess.run(["unshare", "--user", "true"], check=False).returncode == 0
    if not possible:
        with pytest.raises(DatabaseUnusable, match="does not run as root"):
            await start(home)
        return
    server = await start(home)
    assert await query(server, "SELECT 1") == 1
    assert await server.close()
    again = await start(home)
    assert await again.close()


async def test_root_without_an_unprivileged_user_is_told_what_to_do(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_as, "_ACCOUNTS", ())
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(DatabaseUnusable, match="start Tracon as an ordinary user"):
        await start(home)


async def test_a_directory_of_another_major_version_is_refused(home: Path) -> None:
    server = await start(home)
    await server.close()
    (home / "cluster" / "PG_VERSION").write_text("99\n")
    with pytest.raises(DatabaseUnusable, match="PostgreSQL 99, which made this data directory"):
        await start(home)


async def test_what_else_is_in_the_directory_stays_as_it_was(home: Path) -> None:
    home.mkdir(mode=0o750)
    (home / "diary.txt").touch(mode=0o640)
    before = [(path.stat().st_mode, path.stat().st_uid) for path in (home, home / "diary.txt")]
    server = await start(home)
    assert [(path.stat().st_mode, path.stat().st_uid) for path in (home, home / "diary.txt")] == before
    assert await server.close()


async def test_a_socket_folder_that_others_can_enter_is_refused(home: Path) -> None:
    (home / "socket").mkdir(parents=True)
    with pytest.raises(DatabaseUnusable, match="is not private"):
        await start(home)


async def test_a_server_that_will_not_start_says_why_at_once(home: Path) -> None:
    with pytest.raises(DatabaseUnusable, match='invalid value for parameter "shared_buffers": "many"'):
        await start(home, {**FAST, "shared_buffers": "many"})
    await nothing_runs(home)
    server = await start(home)
    assert await server.close()


async def test_settings_override_ours(home: Path) -> None:
    server = await start(home, {**FAST, "max_connections": "17"})
    assert await query(server, "SHOW max_connections") == "17"
    assert await query(server, "SHOW timezone") == "UTC"
    assert await server.close()


async def test_a_path_too_long_for_a_socket_works(tmp_path: Path) -> None:
    home = tmp_path / ("long" * 30)
    server = await start(home)
    assert await query(server, "SELECT 1") == 1
    assert await server.close()


async def test_variables_meant_for_clients_change_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"PGHOST": "nowhere.invalid", "PGPORT": "1", "PGDATA": "/", "LANG": "xx_YY"}.items():
        monkeypatch.setenv(name, value)
    server = await start(home)
    assert await query(server, "SELECT 1") == 1
    assert await server.close()


async def test_the_terminal_s_signals_are_not_for_the_server(home: Path) -> None:
    server = await start(home)
    assert os.getsid(server_pid(home)) not in (os.getsid(0), os.getsid(keeper_pid(home)))
    os.kill(keeper_pid(home), signal.SIGINT)
    os.kill(keeper_pid(home), signal.SIGTERM)
    assert await query(server, "SELECT 1") == 1
    assert await server.close()


def test_it_works_under_uvloop(tmp_path: Path) -> None:
    async def once() -> bool:
        server = await start(tmp_path / "data")
        assert await query(server, "SELECT 1") == 1
        return await server.close()

    assert uvloop.run(once())
