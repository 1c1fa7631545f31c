"""`tracon serve`, started and stopped as an operator does."""

import asyncio
import signal
import socket
from pathlib import Path

import asyncpg

from app.db import embedded, postmaster
from app.db.migrate import migrate
from tests.cli.command import DEMO, serving, tracon


def test_a_bad_settings_file_stops_the_start_naming_file_key_and_reason(tmp_path: Path) -> None:
    config = tmp_path / "tracon.toml"
    config.write_text('[server]\nport = "eighty"\n[sever]\nhost = "::"\n')
    done = tracon("serve", "--config", str(config), "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 2
    assert done.stdout == ""
    named = done.stderr.splitlines()
    assert any(line.startswith(f"{config}: server.port: ") for line in named)
    assert any(line.startswith(f"{config}: sever: ") for line in named)
    assert len(named) == 2
    assert not (tmp_path / "data").exists()


def test_a_port_in_use_is_one_line_and_nothing_is_started(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = tracon("serve", *DEMO, "--port", str(port), "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert str(port) in done.stderr
    assert not (tmp_path / "data").exists()


def test_an_unreachable_database_is_one_line(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    dsn = f"postgresql://nobody:secret@127.0.0.1:{port}/nothing"
    done = tracon("serve", *DEMO, "--port", "0", "--data-dir", str(tmp_path / "data"), TRACON_DSN=dsn)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "secret" not in done.stderr
    assert not (tmp_path / "data").exists()


def test_data_of_another_postgres_major_is_one_line_and_stays_as_it_is(tmp_path: Path) -> None:
    cluster = tmp_path / "data" / "cluster"
    cluster.mkdir(parents=True)
    (tmp_path / "data" / "start.lock").touch()
    (cluster / "PG_VERSION").write_text("9\n")
    done = tracon("serve", *DEMO, "--port", "0", "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert "PostgreSQL 9" in done.stderr
    assert [path.name for path in cluster.iterdir()] == ["PG_VERSION"]


async def test_a_start_that_fails_late_stops_the_postgres_that_it_started(tmp_path: Path) -> None:
    """The database is ahead of this build, which shows only once Postgres is up."""
    data = tmp_path / "data"
    server = await embedded.start(data, settings={"fsync": "off"})
    await migrate(server.dsn())
    connection = await asyncpg.connect(server.dsn())
    await connection.execute("INSERT INTO schema_migrations VALUES ('9999_contract_everything', 'x')")
    await connection.close()
    assert await server.close()
    done = await asyncio.to_thread(tracon, "serve", *DEMO, "--port", "0", "--data-dir", str(data))
    assert done.returncode == 1
    assert done.stdout == ""
    assert "9999_contract_everything" in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert postmaster.find(data / "cluster") is None


def test_sigterm_ends_it_with_status_0_and_no_postgres_is_left(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with serving(*DEMO, "--data-dir", str(data), log=tmp_path / "log") as service:
        assert postmaster.find(data / "cluster") is not None
        assert service.ended(signal.SIGTERM) == 0
        assert service.process.stdout is not None
        assert service.process.stdout.read() == "", "one line on stdout, and no more"
    assert postmaster.find(data / "cluster") is None


async def test_it_stops_at_once_under_a_run_that_streams(database: str, tmp_path: Path) -> None:
    """Ctrl-C, while a client watches a run that has long to go."""
    with serving(*DEMO, "--dsn", database, log=tmp_path / "log") as service:
        watching = asyncio.create_task(
            asyncio.to_thread(service.received, "/api/agents/slow/run", b'{"message": "Go on."}')
        )
        await until_streaming(database)
        assert await asyncio.to_thread(service.ended, signal.SIGINT) == 0
        assert "event: error" in await watching


async def until_streaming(database: str) -> None:
    connection = await asyncpg.connect(database)
    try:
        async with asyncio.timeout(10):
            while not await connection.fetchval(
                "SELECT count(*) FROM stored_events WHERE topic = 'text.delta.v1'"
            ):
                await asyncio.sleep(0.02)
    finally:
        await connection.close()
