"""`tracon replay` and `tracon rebuild` on the log of a real service."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from tests.cli.command import DEMO, Service, serving, tracon


@pytest.fixture
async def service(database: str, tmp_path: Path) -> AsyncIterator[Service]:
    with serving(*DEMO, "--dsn", database, log=tmp_path / "log") as started:
        yield started


def a_run(service: Service) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(
        service.request("/api/agents/support/run", b'{"message": "Where is order 1042?"}')
    )
    return run


async def test_replay_prints_what_the_service_says_of_the_run(service: Service, database: str) -> None:
    """EVENT-1: the live stream and a later replay are the same events with the same numbers."""
    run = await asyncio.to_thread(a_run, service)
    listed = json.loads(await asyncio.to_thread(service.request, f"/api/runs/{run['id']}/events"))
    done = await asyncio.to_thread(tracon, "replay", run["id"], "--json", "--dsn", database)
    assert done.returncode == 0
    assert [json.loads(line) for line in done.stdout.splitlines()] == listed["events"]
    verdict = f"{run['events']} events without a gap: the run is Completed"
    assert done.stderr == f"{verdict}\n"

    shown = await asyncio.to_thread(tracon, "replay", run["id"], "--dsn", database)
    assert shown.returncode == 0
    _, *table, last = shown.stdout.splitlines()
    assert [row.split()[0] for row in table] == [str(n) for n in range(1, run["events"] + 1)]
    assert last == verdict


async def test_rebuild_makes_the_same_rows_again(service: Service, database: str, pool: asyncpg.Pool) -> None:
    """EVENT-6: a view can be dropped and rebuilt by a command to the same rows, while the service runs."""
    run = await asyncio.to_thread(a_run, service)
    done = await asyncio.to_thread(tracon, "rebuild", "runs", "--dsn", database)
    assert (done.returncode, done.stdout) == (0, f"runs: rebuilt from {run['events']} events\n")
    before = await pool.fetch("SELECT * FROM runs")
    assert [str(row["run_id"]) for row in before] == [run["id"]]
    await pool.execute("DELETE FROM runs")
    again = await asyncio.to_thread(tracon, "rebuild", "runs", "--dsn", database)
    assert again.returncode == 0
    assert await pool.fetch("SELECT * FROM runs") == before


async def test_replay_tells_a_gap(service: Service, database: str, pool: asyncpg.Pool) -> None:
    run = await asyncio.to_thread(a_run, service)
    await pool.execute("ALTER TABLE stored_events DISABLE TRIGGER USER")
    await pool.execute(
        "DELETE FROM stored_events WHERE originator_id = $1 AND originator_version = 3", run["id"]
    )
    done = await asyncio.to_thread(tracon, "replay", run["id"], "--dsn", database)
    assert done.returncode == 1
    assert done.stderr == f"tracon: the stream has a gap: 3 of {run['events']} is missing\n"


@pytest.mark.parametrize(
    ("run_id", "said"),
    [
        ("0197c0de-0000-7000-8000-000000000000", "there is no run 0197c0de-0000-7000-8000-000000000000"),
        ("soup", "'soup' is not a run id"),
    ],
)
def test_a_run_that_is_not_there_is_one_line(database: str, run_id: str, said: str) -> None:
    done = tracon("replay", run_id, "--dsn", database)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"tracon: {said}\n")


def test_replay_makes_no_database_where_there_is_none(tmp_path: Path) -> None:
    done = tracon("replay", "0197c0de-0000-7000-8000-000000000000", "--data-dir", str(tmp_path / "data"))
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "data").exists()


def test_replay_joins_the_server_of_a_running_service(tmp_path: Path) -> None:
    data = ("--data-dir", str(tmp_path / "data"))
    with serving(*DEMO, *data, log=tmp_path / "log") as service:
        run = a_run(service)
        beside = tracon("replay", run["id"], "--json", *data)
        assert beside.returncode == 0
        service.process.kill()
        service.process.wait()
        afterwards = tracon("replay", run["id"], "--json", *data)
    assert afterwards.returncode == 0
    assert afterwards.stdout == beside.stdout
