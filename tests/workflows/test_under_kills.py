"""The demo's workflow, in processes that are killed and restarted in the middle of it (WF)."""

import asyncio
import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

from tests.cli.command import DEMO, Service, serving
from tests.workflows.test_running import of_type

WORKFLOW = "/tracon/api/workflows"


class Asking:
    """Requests to one service, as a user of the README makes them."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def post(self, path: str, body: Any, **headers: str) -> Any:
        return json.loads(
            await asyncio.to_thread(self._service.request, path, json.dumps(body).encode(), headers)
        )

    async def get(self, path: str) -> Any:
        return json.loads(await asyncio.to_thread(self._service.request, path))

    async def events(self, run_id: str) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = (await self.get(f"/api/runs/{run_id}/events"))["events"]
        return events

    async def until(self, run_id: str, holds: Any) -> Any:
        """The run, once that holds of it."""
        async with asyncio.timeout(30):
            while not holds(record := await self.get(f"/api/runs/{run_id}")):
                await asyncio.sleep(0.05)
        return record

    async def until_event(self, run_id: str, kind: str, node: str) -> None:
        async with asyncio.timeout(30):
            while not any(one.get("node") == node for one in of_type(await self.events(run_id), kind)):
                await asyncio.sleep(0.02)


async def test_the_demo_workflow_survives_a_kill_and_waits_for_its_person_across_a_restart(
    database: str, tmp_path: Path
) -> None:
    """WF-2, WF-3, WF-4: what was finished is not done again, what was not is, and nobody is asked twice."""
    host = (*DEMO, "--dsn", database)
    with serving(*host, log=tmp_path / "1") as service:
        ask = Asking(service)
        first = (await ask.post("/api/workflows/article/run", {"message": "tides"}, Prefer="respond-async"))[
            "id"
        ]
        await ask.until_event(first, "NodeInvoked", "write")
        assert await asyncio.to_thread(service.ended, signal.SIGKILL) == -signal.SIGKILL
    with serving(*host, log=tmp_path / "2") as service:
        ask = Asking(service)
        interrupted = await ask.until(first, lambda run: run["continued_by_run_id"])
        assert (interrupted["status"], interrupted["error_type"]) == ("Failed", "interrupted")
        second = interrupted["continued_by_run_id"]
        await ask.until(second, lambda run: run["status"] == "AwaitingInput")
        assert await asyncio.to_thread(service.ended, signal.SIGTERM) == 0
    with serving(*host, log=tmp_path / "3") as service:
        ask = Asking(service)
        [request] = (await ask.get(f"/api/workflows/runs/{second}/requests"))["requests"]
        assert request["prompt"].startswith("Publish this? An article. The tide comes in")
        third = await ask.post(f"/api/workflows/runs/{second}/respond", {"answer": "yes"})
        assert third["status"] == "Completed"
        assert third["answer"].startswith("Published: An article. The tide comes in")
        assert (await ask.get(f"/api/workflows/runs/{second}/requests"))["requests"] == []
        events = [await ask.events(run_id) for run_id in (first, second, third["id"])]
    done = Counter(one["output"]["node"] for of_run in events for one in of_type(of_run, "NodeCompleted"))
    assert done == {"research": 1, "write": 1, "publish": 1}
