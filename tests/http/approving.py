"""Hosts whose agents have tools that a person has to approve of."""

import asyncio
from collections import Counter
from typing import Any
from uuid import UUID

from app.tools.tool import Tool
from domain import events as e
from domain.ids import RunId
from tests.hosts import follow, scripted
from tests.http.client import Answer, Client
from tracon import ToolContext, tool

RECONCILING = (
    "[run_reconciliation]\nenabled = true\n[run_continuation]\nenabled = true\n"
    '[async_run]\npoll_interval = "100ms"\n'
)
MODELS = """
[[providers.script.models.m.default]]
text = "Let me look."
tool_call = { name = "look", id = "c0" }

[[providers.script.models.m.default]]
tool_calls = [
    { name = "look", id = "c1" },
    { name = "refund", id = "c2", arguments = { order = "7" } },
    { name = "mail", id = "c3" },
    { name = "refund", id = "c4", arguments = { order = "8" } },
]

[[providers.script.models.m.default]]
last_tool_result = "Done: {result}"

[[providers.script.models.once.default]]
tool_call = { name = "refund", id = "c1", arguments = { order = "7" } }

[[providers.script.models.once.default]]
last_tool_result = "It says: {result}"

[[providers.script.models.twice.default]]
tool_call = { name = "refund", id = "same", arguments = { order = "7" } }

[[providers.script.models.twice.default]]
tool_call = { name = "refund", id = "same", arguments = { order = "7" } }

[[providers.script.models.twice.default]]
last_tool_result = "It says: {result}"
[[providers.script.models.broken.default]]
tool_call = { name = "refund", id = "c1", arguments = { oder = "7" } }

[[providers.script.models.broken.default]]
text = "I was wrong."

[[providers.script.models.long.default]]
tool_call = { name = "refund", id = "c1", arguments = { order = "7" } }

[[providers.script.models.long.default]]
tool_call = { name = "look", id = "c2" }

[[providers.script.models.long.default]]
last_tool_result = "Done: {result}"
"""
AGENTS = "".join(
    f'[agents.{name}]\nprovider = "script"\nmodel = "{name}"\ntools = ["look", "refund", "mail"]\n'
    for name in ("m", "once", "twice", "long", "broken")
)


def settings(more: str = "", agents: str = AGENTS) -> str:
    return scripted(MODELS, agents, RECONCILING + more)


class Desk:
    """What the tools did. `refund` has to be approved."""

    def __init__(self) -> None:
        self.done: list[tuple[str, str]] = []
        self.held = asyncio.Event()

    def tools(self, *, hold: str = "") -> tuple[Tool, ...]:
        """`hold`: this one does not come back."""

        @tool(effect="read")
        async def look(context: ToolContext) -> str:
            """Look at something."""
            self.done.append(("look", context.call_key))
            if hold == "look":
                self.held.set()
                await asyncio.Event().wait()
            return "looked"

        @tool(effect="destructive", requires_approval=True)
        async def refund(order: str, context: ToolContext) -> str:
            """Refund an order."""
            self.done.append(("refund", context.call_key))
            return f"refunded {order}"

        @tool(effect="external")
        async def mail(context: ToolContext) -> str:
            """Tell the customer."""
            self.done.append(("mail", context.call_key))
            return "sent"

        return look, refund, mail

    @property
    def ran(self) -> Counter[str]:
        return Counter(name for name, _ in self.done)


async def waits(client: Client, agent: str = "once", **more: Any) -> RunId:
    """A run of the agent that waits for an approval."""
    answer = await client.run(agent, **more)
    assert (answer.status, answer.body["status"], answer.body["answer"]) == (202, "AwaitingApproval", None)
    return RunId(UUID(answer.body["id"]))


async def decide(client: Client, run_id: RunId, decision: str = "approve", **more: Any) -> Answer:
    body = {"decision": decision, **more} if decision else more
    return await client.post(f"/tracon/api/approvals/{run_id}/decide", body)


async def opened(client: Client, run_id: RunId, decision: str = "approve", **more: Any) -> RunId:
    """The run that the decision opened."""
    answer = await decide(client, run_id, decision, **more)
    assert answer.status == 200, answer.body
    assert answer.headers["Location"] == f"/tracon/api/runs/{answer.body['opened_run_id']}"
    return RunId(UUID(answer.body["opened_run_id"]))


async def gone_on(
    client: Client, run_id: RunId, decision: str = "approve", **more: Any
) -> list[e.Recorded[e.Event]]:
    """All events of the run that the decision opened."""
    return await follow(client.host, await opened(client, run_id, decision, **more))
