"""Hosts that are killed around a decision: what was decided is carried out, once (TOOL-2)."""

import asyncio
import http.client
import json
import signal
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command import Service, serving
from tests.http.client import eventually

APP = Path(__file__).with_name("approval_app.py")
SETTINGS = """
[run_reconciliation]
enabled = true
heartbeat_interval = "100ms"
orphan_threshold = "1s"
scan_interval = "200ms"

[run_continuation]
enabled = true

[providers.script]
type = "scripted"

[[providers.script.models.clerk.default]]
tool_call = { name = "refund" }

[[providers.script.models.clerk.default]]
last_tool_result = "It says: {result}"
"""
ASKED = b'{"message": "Refund it.", "session_id": "s"}'
APPROVE = b'{"decision": "approve"}'


class Place:
    """Where hosts are started, one after the other, and what their tool did."""

    def __init__(self, folder: Path, dsn: str) -> None:
        self._folder = folder
        (folder / "tracon.toml").write_text(SETTINGS)
        self._arguments = ("--app", str(APP), "--config", str(folder / "tracon.toml"), "--dsn", dsn)

    def host(self, name: str, **variables: str) -> Any:
        world = str(self._folder / "world")
        return serving(*self._arguments, log=self._folder / name, APPROVAL_WORLD=world, **variables)

    @property
    def refunds(self) -> list[str]:
        world = self._folder / "world"
        return world.read_text().split() if world.exists() else []


@pytest.fixture
def place(tmp_path: Path, database: str) -> Place:
    return Place(tmp_path, database)


@pytest.mark.parametrize("point", ["approval.decide.before", "approval.decide.after"])
async def test_a_decision_survives_the_host_that_took_it(place: Place, point: str) -> None:
    """TOOL-2: recorded first, then applied. Nothing of it is in the memory of a host."""
    await asyncio.to_thread(_decided_under_a_kill, place, point)


def _decided_under_a_kill(place: Place, point: str) -> None:
    with place.host("first.log", TRACON_FAULT=f"{point}:1") as first:
        run_id = json.loads(first.request("/api/agents/clerk/run", ASKED))["id"]
        with suppress(http.client.HTTPException, ConnectionError):
            first.request(f"/api/approvals/{run_id}/decide", APPROVE)
        assert first.process.wait(20) == -signal.SIGKILL
    assert place.refunds == []
    with place.host("second.log") as second:
        state = json.loads(second.request(f"/api/approvals/{run_id}"))["state"]
        assert state == ("pending" if point.endswith("before") else "decided")
        decided = json.loads(second.request(f"/api/approvals/{run_id}/decide", APPROVE))
        frames = second.received(f"/api/runs/{decided['opened_run_id']}/events", b"")
        assert "event: RunCompleted" in frames
        again = json.loads(second.request(f"/api/approvals/{run_id}/decide", APPROVE))
        assert again == decided
    assert len(place.refunds) == 1


@pytest.mark.parametrize("point", ["run.end.before", "run.end.after"])
async def test_a_run_waits_once_wherever_its_host_is_killed(place: Place, point: str) -> None:
    """EVENT-2: its end and what it asks for are one append; without it the run goes on, and asks then."""
    with place.host("first.log", TRACON_FAULT=f"{point}:1") as first:
        with suppress(http.client.HTTPException, ConnectionError, AssertionError):
            await asyncio.to_thread(first.request, "/api/agents/clerk/run", ASKED)
        assert await asyncio.to_thread(first.process.wait, 20) == -signal.SIGKILL
    with place.host("second.log") as second:
        await eventually(_waiting(second, 1), within_s=30)
        [approval] = _pending(second)
        await asyncio.to_thread(second.request, f"/api/approvals/{approval['id']}/decide", APPROVE)
        await eventually(lambda: len(place.refunds) == 1, within_s=30)
        await eventually(_waiting(second, 0), within_s=30)


def _waiting(service: Service, number: int) -> Callable[[], bool]:
    return lambda: len(_pending(service)) == number


def _pending(service: Service) -> list[dict[str, Any]]:
    approvals: list[dict[str, Any]] = json.loads(service.request("/api/approvals?state=pending"))["approvals"]
    return approvals
