"""The approval of the README: an order that is stopped when somebody has approved of it."""

import asyncio
import json
from typing import Any

from tests.cli.conftest import Demo

ASKED = b'{"message": "I do not want order 1042 any more."}'


async def test_the_demo_stops_an_order_when_somebody_approves(demo: Demo) -> None:
    """TOOL-2"""

    async def asked(path: str, body: bytes | None = None) -> Any:
        return json.loads(await asyncio.to_thread(demo.service.request, path, body))

    run = await asked("/api/agents/returns/run", ASKED)
    assert run["status"] == "AwaitingApproval"
    approval = await asked(f"/api/approvals/{run['id']}")
    assert [(call["tool"], call["arguments"]) for call in approval["calls"]] == [
        ("cancel_order", '{"order_id":"1042"}')
    ]
    decided = await asked(
        f"/api/approvals/{run['id']}/decide", b'{"decision": "reject", "reason": "Too late."}'
    )
    path = f"/api/runs/{decided['opened_run_id']}/events"
    async with asyncio.timeout(20):
        while (events := (await asked(path))["events"])[-1]["type"] != "RunCompleted":
            await asyncio.sleep(0.05)
    assert "Too late." in events[-1]["data"]["answer"]
