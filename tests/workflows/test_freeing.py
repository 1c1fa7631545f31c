"""What a workflow's run held is freed when it is over, without a search for cycles of objects."""

from collections.abc import Iterator

import pytest

from app.supervision.live_actor import LiveActor
from app.workflows.actor import WorkflowActor
from tests.freeing import are_freed, no_search, noting
from tests.http.client import eventually
from tests.workflows.conftest import Workshop, agent, function, sequence
from tests.workflows.test_running import run


def held_by(actor: LiveActor) -> Iterator[object]:
    if isinstance(actor, WorkflowActor):
        yield from (actor, actor._live, actor._spending, actor._nodes)


async def test_a_run_that_is_over_holds_no_memory(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await workshop.open(sequence(agent("a"), function("b")))
    parts = noting(monkeypatch, client.host.roster, held_by)
    with no_search():
        assert (await run(client)).body["status"] == "Completed"
        assert len(parts) == 4
        workshop.calls.clear()  # a context lets its function report what it used
        await eventually(lambda: are_freed(parts))
