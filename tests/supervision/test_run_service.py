"""Opening runs: what goes into the append that makes them."""

import pytest

from app.identity import new_run_id
from app.store.event_log import Change, VersionConflict
from domain.events import RunCreated, SessionTurnAdded
from domain.ids import DEFAULT_TENANT, Version, run_stream, session_stream
from domain.messages import UserMessage
from tests.hosts import OpenHost, follow, kinds, scripted, start

ECHO = scripted("[providers.script.models.echo]", '[agents.echo]\nprovider = "script"\nmodel = "echo"')
PAIR = session_stream(DEFAULT_TENANT, "pair")


def turn(expected: int) -> Change:
    added = SessionTurnAdded(run_id=new_run_id(), messages=(UserMessage(content="before"),))
    return Change(stream_id=PAIR, expected=Version(expected), tenant=DEFAULT_TENANT, events=(added,))


async def test_a_run_begins_under_the_id_it_was_given_together_with_what_goes_alongside(
    host_of: OpenHost,
) -> None:
    """IDEM-4: one append."""
    host = await host_of(ECHO)
    run_id = await start(host, "echo", run_id=(chosen := new_run_id()), alongside=(turn(0),))
    assert run_id == chosen
    assert kinds(await follow(host, run_id))[-1] == "RunCompleted"
    created, *_ = await host.services.log.read_stream(run_stream(run_id), limit=1)
    [beside] = await host.services.log.read_stream(PAIR)
    assert isinstance(created.event, RunCreated)
    assert beside.at == created.at


async def test_where_a_stream_alongside_has_moved_nothing_begins(host_of: OpenHost) -> None:
    """IDEM-4"""
    host = await host_of(ECHO)
    await start(host, "echo", alongside=(turn(0),))
    chosen = new_run_id()
    with pytest.raises(VersionConflict) as refused:
        await start(host, "echo", run_id=chosen, alongside=(turn(0),))
    assert refused.value.stream_ids == (PAIR,)
    assert await host.services.log.read_stream(run_stream(chosen)) == []
    assert host.roster.find(chosen) is None
