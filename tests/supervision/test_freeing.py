"""What a run held is freed when it is over, without a search for cycles of objects: hosts search seldom."""

from collections.abc import Iterator

import pytest

from app.main import Host
from app.supervision.live_actor import LiveActor
from app.supervision.run_actor import RunActor
from domain.events import ModelCallStarted
from domain.ids import DEFAULT_TENANT
from tests.freeing import are_freed, no_search, noting
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


def held_by(actor: LiveActor) -> Iterator[object]:
    """What it holds of the run, and what takes a part's being gone for the end of the run."""
    assert isinstance(actor, RunActor)
    spending = actor._spending
    assert spending._quotas is not None
    yield from (actor, actor._live, spending, spending.tree, spending._quotas)


@pytest.mark.parametrize("agent", ["plain", "tools", "fails", "silent"])
async def test_a_run_that_is_over_holds_no_memory(
    host_of: OpenHost, monkeypatch: pytest.MonkeyPatch, agent: str
) -> None:
    host: Host = await host_of(scripted(MODELS, AGENTS, QUOTA), tools=(look,))
    parts = noting(monkeypatch, host.roster, held_by)
    with no_search():
        run_id = await start(host, agent, streaming=True, session_id="s")
        if agent == "silent":
            await follow(host, run_id, ModelCallStarted)
            await host.services.runs.cancel(DEFAULT_TENANT, run_id, "enough")
        await follow(host, run_id)
        assert len(parts) == 5
        await eventually(lambda: are_freed(parts))
