"""Calls of tools, as a run would make them."""

import asyncio
import threading
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from app.settings import CancellationSettings
from app.tools.context import ToolContext
from app.tools.runner import Outcome, ToolRunner
from app.tools.tool import Tool
from domain.ids import RunId

CONTEXT = ToolContext(
    tenant="default",
    run_id=RunId(UUID("0190f3c2-0000-7000-8000-000000000001")),
    session_id="s-1",
    call_id="call-1",
    call_key="tk_1",
    deadline=datetime(2030, 1, 1, tzinfo=UTC),
)


def tool_threads_end() -> None:
    """Wait until no tool runs in a thread any more."""
    for thread in threading.enumerate():
        if thread.name == "tool":
            thread.join(30)


class Pauses:
    """Stands for the wait between attempts and remembers which there were."""

    def __init__(self) -> None:
        self.after: list[int] = []

    async def __call__(self, attempt: int) -> None:
        self.after.append(attempt)


def a_runner(*, grace_s: float = 5.0, pauses: Pauses | None = None, **options: Any) -> ToolRunner:
    return ToolRunner(CancellationSettings(grace=grace_s), pause=pauses or Pauses(), **options)


async def call(tool: Tool, arguments: str = "{}", runner: ToolRunner | None = None) -> Outcome:
    return await (runner or a_runner()).run(tool, arguments, CONTEXT)


def begun(tool: Tool, runner: ToolRunner | None = None) -> asyncio.Task[Outcome]:
    return asyncio.create_task(call(tool, "{}", runner))
