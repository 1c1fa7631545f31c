"""One server for all its users, whatever happens to them and to it."""

import asyncio
import os
import signal
from pathlib import Path

import asyncpg

from app.db.binaries import find_binaries
from app.db.errors import StoreUnavailable
from app.db.pool import open_pool
from tests.db.servers import (
    keeper_pid,
    let_go,
    nobody_keeps,
    nothing_runs,
    query,
    said,
    server_pid,
    start,
    succeeds,
    user_process,
)


async def test_the_second_share_keeps_the_server_and_the_last_one_stops_it(home: Path) -> None:
    first = await start(home)
    pid = server_pid(home)
    second = await start(home)
    assert await first.close() is False
    assert await query(second, "SELECT 1") == 1
    assert server_pid(home) == pid
    assert await second.close() is True
    await nothing_runs(home)


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


async def test_the_terminal_s_signals_are_not_for_the_server(home: Path) -> None:
    server = await start(home)
    assert os.getsid(server_pid(home)) not in (os.getsid(0), os.getsid(keeper_pid(home)))
    os.kill(keeper_pid(home), signal.SIGINT)
    os.kill(keeper_pid(home), signal.SIGTERM)
    assert await query(server, "SELECT 1") == 1
    assert await server.close()
