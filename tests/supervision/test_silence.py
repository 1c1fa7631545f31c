"""A last link that says nothing until the run's deadline, which is its only limit (CLASS-2, BREAK-1)."""

from typing import Any

import pytest

from app.models.accounts import Account
from domain import events as e
from domain.agent import AgentDefinition, Link
from domain.breaker import CircuitStatus
from domain.failure import ErrorClass, FailureClass, FailureKind
from domain.ids import DEFAULT_TENANT
from tests.hosts import OpenHost, chained, follow, kinds, only, start
from tests.supervision.conftest import OpenWall
from tests.supervision.one_database import database as database
from tests.supervision.walls import FAMILIES, provider
from tests.upstream.server import Upstream

OK = 'default = { text = "All well." }'
SILENT = "default = { silent = true }"
SHORT = '[turn]\ntimeout = "400ms"\n[circuit_breaker]\nfailure_threshold = 2\n'


async def run(host: Any, **more: Any) -> list[e.Recorded[e.Event]]:
    return await follow(host, await start(host, "a", **more))


@pytest.mark.parametrize("streaming", [True, False], ids=["watched", "waited for"])
@pytest.mark.parametrize("fault", ["silent", "silent-after-preamble"])
@pytest.mark.parametrize("family", FAMILIES)
async def test_a_silent_provider_opens_its_circuit_although_no_link_is_left(
    wall_of: OpenWall, upstream: Upstream, family: str, fault: str, streaming: bool
) -> None:
    """CLASS-2, BREAK-1: the deadline's end of a silent call is silence. The run's own end is its deadline."""
    wall = await wall_of(
        providers={"p": provider(family, upstream, "p")},
        agents=(AgentDefinition(name="a", provider="p", model=fault),),
        turn={"timeout": 0.4},
        circuit_breaker={"failure_threshold": 2},
    )
    for _ in range(2):
        seen = await run(wall.host, streaming=streaming)
        (failed,) = only(seen, e.ModelCallFailed)
        assert (failed.failure.kind, failed.failure_class) == (FailureKind.SILENT, FailureClass.UNAVAILABLE)
        (end,) = only(seen, e.RunFailed)
        assert (end.error_type, end.error_class) == ("deadline_exceeded", ErrorClass.TIMEOUT)
        assert end.fallbacks_taken == ()
        assert "waited for a place" not in end.error
    seen = await run(wall.host, streaming=streaming)
    assert only(seen, e.RunFailed)[0].error_type == "provider_unavailable"
    assert [one.failure.kind for one in only(seen, e.ModelCallFailed)] == [FailureKind.CIRCUIT_OPEN]
    assert len(wall.attempts("p", fault)) == 2
    await upstream.deserted()


async def test_a_call_that_had_only_what_others_left_of_the_time_says_nothing(host_of: OpenHost) -> None:
    """CLASS-2: a provider is not down because a run came to it too late."""
    more = '[turn]\ntimeout = "400ms"\n[chain]\nfirst_content_timeout = "300ms"\n'
    host = await host_of(chained(SILENT, SILENT, more=more))
    for _ in range(2):
        seen = await run(host)
        assert only(seen, e.RunFailed)[0].error_type == "deadline_exceeded"
        assert [one.provider for one in only(seen, e.ModelCallFailed)] == ["p1"]
    assert host.services.circuits.health(Account("p2")).consecutive_failures == 0


async def test_an_answer_that_was_under_way_says_nothing_against_its_provider(host_of: OpenHost) -> None:
    """CLASS-2: it was too long for the run, and not silent."""
    host = await host_of(chained('default = { text = "Well, then", stall_after = 1 }', more=SHORT))
    for _ in range(2):
        seen = await run(host, streaming=True)
        assert [delta.text for delta in only(seen, e.TextDelta)] == ["Well,"]
        (end,) = only(seen, e.RunFailed)
        assert end.error_type == "deadline_exceeded"
        assert "waited for a place" not in end.error
    assert host.services.circuits.health(Account("p1")).consecutive_failures == 0


async def test_a_caller_who_leaves_a_silent_call_says_nothing_against_its_provider(host_of: OpenHost) -> None:
    """CLASS: `cancelled` counts for nothing, however long the silence was."""
    host = await host_of(chained(SILENT, more="[circuit_breaker]\nfailure_threshold = 1\n"))
    for _ in range(3):
        run_id = await start(host, "a")
        await follow(host, run_id, e.ModelCallStarted)
        step = vars(host.roster.find(run_id))["_model_step"]
        vars(step)["_began"] -= 3600.0  # the call has taken an hour by now
        await host.services.runs.cancel(DEFAULT_TENANT, run_id)
        seen = await follow(host, run_id)
        assert kinds(seen)[-1] == "RunCancelled"
        assert only(seen, e.ModelCallFailed) == []
    assert host.services.circuits.health(Account("p1")).circuit is CircuitStatus.CLOSED


async def test_the_links_that_were_tried_until_the_deadline_are_listed(host_of: OpenHost) -> None:
    """CHAIN-11: the silent one among them. The chain is not exhausted: the run ran out of time first."""
    host = await host_of(chained("default = { status = 503 }", SILENT, more=SHORT))
    seen = await run(host)
    (end,) = only(seen, e.RunFailed)
    assert end.error_type == "deadline_exceeded"
    assert end.fallbacks_taken == (Link(provider="p1", model="m"), Link(provider="p2", model="m"))
    assert "ChainExhausted" not in kinds(seen)
    assert host.services.circuits.health(Account("p2")).consecutive_failures == 1
