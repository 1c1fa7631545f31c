"""What a run held is freed when it is over, without a search for cycles of objects: hosts search seldom."""

import asyncio
import gc
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from app.main import Host
from app.supervision.live_actor import LiveActor
from app.supervision.run_actor import RunActor
from domain.events import ModelCallStarted
from domain.ids import DEFAULT_TENANT
from tests.hosts import OpenHost, follow, scripted, start
from tests.http.client import eventually
from tracon import tool

MODELS = """
[providers.script.models.plain]
[providers.script.models.tools]
supports_tools = true
default = [{ tool_call = { name = "look" } }, { text = "done" }]
[providers.script.models.silent.default]
silent = true
[providers.script.models.fails.default]
status = { status = 400 }
"""
AGENTS = "".join(
    f'[agents.{name}]\nprovider = "script"\nmodel = "{name}"\ntools = ["look"]\n'
    for name in ("plain", "tools", "fails", "silent")
)


QUOTA = '[quotas.tokens]\nmetric = "tokens"\nperiod = "day"\nlimit = 1000000\n'


@tool(effect="read")
async def look() -> str:
    """Look at something."""
    return "looked"


@pytest.fixture
def no_search() -> Iterator[None]:
    """Nothing looks for cycles."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def parts_of(actor: LiveActor) -> Iterator[weakref.ref[Any]]:
    """What it holds of the run, and what takes a part's being gone for the end of the run."""
    assert isinstance(actor, RunActor)
    held = (actor, actor._live, actor._spending, actor._spending.tree, actor._spending._quotas)
    yield from (weakref.ref(part) for part in held if part is not None)


@pytest.mark.parametrize("agent", ["plain", "tools", "fails", "silent"])
@pytest.mark.usefixtures("no_search")
async def test_a_run_that_is_over_holds_no_memory(
    host_of: OpenHost, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    host: Host = await host_of(scripted(MODELS, AGENTS, QUOTA), tools=(look,))
    begin, parts = host.roster.start, list[weakref.ref[Any]]()

    def noted(actor: LiveActor) -> asyncio.Task[None]:
        parts.extend(parts_of(actor))
        return begin(actor)

    monkeypatch.setattr(host.roster, "start", noted)
    run_id = await start(host, agent, streaming=True, session_id="s")
    if agent == "silent":
        await follow(host, run_id, ModelCallStarted)
        await host.services.runs.cancel(DEFAULT_TENANT, run_id, "enough")
    await follow(host, run_id)
    assert len(parts) == 5
    await eventually(lambda: all(part() is None for part in parts))
