"""What a workflow's run held is freed when it is over, without a search for cycles of objects."""

import asyncio
import gc
import weakref
from typing import Any

import pytest

from app.supervision.live_actor import LiveActor
from app.workflows.actor import WorkflowActor
from tests.http.client import eventually
from tests.workflows.conftest import Workshop, agent, function, sequence
from tests.workflows.test_running import run


async def test_a_run_that_is_over_holds_no_memory(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await workshop.open(sequence(agent("a"), function("b")))
    begin, parts = client.host.roster.start, list[weakref.ref[Any]]()

    def noted(actor: LiveActor) -> asyncio.Task[None]:
        if isinstance(actor, WorkflowActor):
            parts.extend(weakref.ref(part) for part in (actor, actor._live, actor._spending, actor._nodes))
        return begin(actor)

    monkeypatch.setattr(client.host.roster, "start", noted)
    gc.collect()
    gc.disable()
    try:
        assert (await run(client)).body["status"] == "Completed"
        assert len(parts) == 4
        workshop.calls.clear()  # a context lets its function report what it used
        await eventually(lambda: all(part() is None for part in parts))
    finally:
        gc.enable()
