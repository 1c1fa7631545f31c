"""A server in a directory: what is kept, what is refused, and what its surroundings cannot change."""

import tempfile
from pathlib import Path

import pytest
import uvloop

from app.db import data_dir
from app.db.errors import DatabaseUnusable
from tests.db.servers import FAST, nothing_runs, query, start


async def test_data_is_there_after_a_restart(home: Path) -> None:
    first = await start(home)
    await query(first, "CREATE TABLE kept (id int)")
    await first.close()
    second = await start(home)
    assert await query(second, "SELECT count(*) FROM kept") == 0
    assert await second.close()


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


def test_it_works_under_uvloop(tmp_path: Path) -> None:
    async def once() -> bool:
        server = await start(tmp_path / "data")
        assert await query(server, "SELECT 1") == 1
        return await server.close()

    assert uvloop.run(once())


def test_a_deep_data_directory_has_its_socket_where_a_path_is_short(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket's path has a limit, and a temporary folder of one's own can be deep down, too."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    folder = data_dir._socket_dir(deep)
    try:
        assert len(str(folder)) < 80
    finally:
        folder.rmdir()
