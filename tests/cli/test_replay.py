"""`tracon replay` and `tracon rebuild` on the log of a real service."""

import asyncio
import json
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from app.assembly.stores import open_log
from app.identity import new_run_id
from app.settings import StoreSettings
from app.store.change import Change
from domain.agent import AgentDefinition
from domain.commands import CreateRun
from domain.decide import decide
from domain.events import ModelCallStarted, RunStarted
from domain.ids import DEFAULT_TENANT, RunId, Version, run_stream
from domain.messages import UserMessage
from domain.run import Run
from tests.cli.command import DEMO, Service, serving, tracon
from tests.cli.conftest import Demo

NOBODY = "0197c0de-0000-7000-8000-000000000000"


def a_run(service: Service) -> dict[str, Any]:
    run: dict[str, Any] = json.loads(
        service.request("/api/agents/support/run", b'{"message": "Where is order 1042?"}')
    )
    return run


def test_replay_prints_what_the_service_says_of_the_run(demo: Demo) -> None:
    """EVENT-1: the live stream and a later replay are the same events with the same numbers."""
    run = a_run(demo.service)
    listed = json.loads(demo.service.request(f"/api/runs/{run['id']}/events"))
    done = tracon("replay", run["id"], "--json", "--dsn", demo.dsn)
    assert done.returncode == 0
    assert [json.loads(line) for line in done.stdout.splitlines()] == listed["events"]
    verdict = f"{run['events']} events without a gap: the run is Completed"
    assert done.stderr == f"{verdict}\n"

    shown = tracon("replay", run["id"], "--dsn", demo.dsn)
    assert shown.returncode == 0
    _, *table, last = shown.stdout.splitlines()
    assert [row.split()[0] for row in table] == [str(n) for n in range(1, run["events"] + 1)]
    assert last == verdict


async def test_rebuild_makes_the_same_rows_again(demo: Demo) -> None:
    """EVENT-6: a view can be dropped and rebuilt by a command to the same rows, while the service runs."""
    run = await asyncio.to_thread(a_run, demo.service)
    connection = await asyncpg.connect(demo.dsn)
    try:
        events = await connection.fetchval("SELECT count(*) FROM stored_events")
        before = None
        for _ in range(2):
            done = await asyncio.to_thread(tracon, "rebuild", "runs", "--dsn", demo.dsn)
            assert (done.returncode, done.stdout) == (0, f"runs: rebuilt from {events} events\n")
            rows = await connection.fetch("SELECT * FROM runs ORDER BY run_id")
            assert run["id"] in {str(row["run_id"]) for row in rows}
            assert before in (None, rows)
            before = rows
            await connection.execute("DELETE FROM runs")
    finally:
        await connection.close()


async def test_replay_tells_a_gap(database: str, pool: asyncpg.Pool) -> None:
    run_id = await a_recorded_run(database)
    await pool.execute("ALTER TABLE stored_events DISABLE TRIGGER USER")  # the log lets nobody do this
    await pool.execute("DELETE FROM stored_events WHERE originator_version = 2")
    done = await asyncio.to_thread(tracon, "replay", str(run_id), "--dsn", database)
    assert done.returncode == 1
    assert done.stderr == "tracon: the stream has a gap: 2 of 3 is missing\n"


async def a_recorded_run(dsn: str) -> RunId:
    """Three events, written by nobody but this test."""
    run_id = new_run_id()
    create = CreateRun(tenant=DEFAULT_TENANT, agent="a", input=(UserMessage(content="hello"),))
    events = (
        *decide(Run(id=run_id), create),
        RunStarted(host="h", definition=AgentDefinition(name="a", provider="p", model="m")),
        ModelCallStarted(step=1, attempt=1, provider="p", model="m"),
    )
    change = Change(stream_id=run_stream(run_id), expected=Version(0), tenant=DEFAULT_TENANT, events=events)
    async with open_log(dsn, StoreSettings()) as log:
        await log.append(change)
    return run_id


@pytest.mark.parametrize(
    ("run_id", "said"), [(NOBODY, f"there is no run {NOBODY}"), ("soup", "'soup' is not a run id")]
)
def test_a_run_that_is_not_there_is_one_line(demo: Demo, run_id: str, said: str) -> None:
    done = tracon("replay", run_id, "--dsn", demo.dsn)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"tracon: {said}\n")


def test_replay_makes_no_database_where_there_is_none(tmp_path: Path) -> None:
    done = tracon("replay", NOBODY, "--data-dir", str(tmp_path / "data"))
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
