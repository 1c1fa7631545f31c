"""The pen of a stream's owner (EVENT-3): facts go down in order, or not at all."""

import asyncio

import pytest

from app.db.errors import StoreUnavailable
from app.store.event_log import EventLog, VersionConflict
from app.store.stream_writer import Fenced, StreamWriter
from domain.events import RunCreated, RunKind
from domain.ids import Version
from tests.store.proxy import Proxy
from tests.store.samples import PATIENCE_S, change, said, stream, texts, until


class Told:
    """What a pen told its owner."""

    def __init__(self, pen: StreamWriter) -> None:
        self.committed: list[list[str]] = []
        self.lost: list[BaseException] = []
        pen.on_committed = lambda recorded: self.committed.append(texts(list(recorded)))
        pen.on_lost = self.lost.append


async def test_what_is_recorded_is_committed_in_order_when_flush_returns(log: EventLog) -> None:
    """EVENT-2: the barrier."""
    run = stream()
    pen = StreamWriter(log, run, version=Version(0), tenant="acme")
    pen.record([said("a")])
    pen.record([said("b"), said("c")])
    assert (pen.version, pen.end) == (0, 3)
    await pen.flush()
    assert (pen.version, pen.end) == (3, 3)
    recorded = await log.read_stream(run)
    assert texts(recorded) == ["a", "b", "c"]
    assert {one.tenant for one in recorded} == {"acme"}
    await pen.flush()  # nothing is left to wait for


async def test_what_is_recorded_while_an_append_is_under_way_goes_into_the_next_one(
    frail: EventLog, proxy: Proxy
) -> None:
    pen = StreamWriter(frail, stream(), version=Version(0))
    told = Told(pen)
    proxy.hold()
    for text in "abc":
        pen.record([said(text)])
    proxy.let_go()
    await pen.flush()
    assert told.committed == [["a"], ["b", "c"]]


async def test_nothing_is_stored_after_something_that_was_refused(
    frail: EventLog, log: EventLog, proxy: Proxy
) -> None:
    """The owner was presumed dead; its run was closed from another host."""
    run = stream()
    pen = StreamWriter(frail, run, version=Version(0))
    told = Told(pen)
    pen.record([said("begun")])
    await pen.flush()
    await log.append(change(run, 1, "closed by another"))
    proxy.hold()
    pen.record([said("lost")])
    pen.record([said("later")])
    proxy.let_go()
    with pytest.raises(Fenced) as fenced:
        await pen.flush()
    assert fenced.value.stream_id == run
    with pytest.raises(Fenced):
        pen.record([said("after the end")])
    with pytest.raises(Fenced):
        await pen.flush()
    assert texts(await log.read_stream(run)) == ["begun", "closed by another"]
    assert told.committed == [["begun"]]
    assert told.lost == [fenced.value]


async def test_nothing_is_stored_after_something_whose_outcome_nobody_knows(
    frail: EventLog, log: EventLog, proxy: Proxy
) -> None:
    """EVENT-8: the store went away for longer than the pen's patience, then came back."""
    run = stream()
    pen = StreamWriter(frail, run, version=Version(0), patience_s=0.1)
    told = Told(pen)
    proxy.lose_request(then_hold=True)
    pen.record([said("lost")])
    pen.record([said("later")])
    async with asyncio.timeout(PATIENCE_S):
        await proxy.lost.wait()
    await proxy.refuse()
    proxy.let_go()
    with pytest.raises(StoreUnavailable):
        await pen.flush()
    await proxy.accept()
    other = stream()
    await frail.append(change(other, 0, "back again"), patience_s=PATIENCE_S)
    with pytest.raises(StoreUnavailable):
        pen.record([said("after the end")])
    assert await log.read_stream(run) == []
    assert [type(one) for one in told.lost] == [StoreUnavailable]


async def test_a_pen_with_patience_writes_on_after_an_outage(frail: EventLog, proxy: Proxy) -> None:
    """EVENT-8: live runs hold at their next barrier."""
    run = stream()
    pen = StreamWriter(frail, run, version=Version(0), patience_s=PATIENCE_S)
    pen.record([said("before")])
    await pen.flush()
    await proxy.refuse()
    pen.record([said("during")])
    pen.record([said("also")])
    flushing = asyncio.create_task(pen.flush())

    async def down() -> bool:
        return frail.down is not None

    await until(down)
    assert not flushing.done()
    await proxy.accept()
    await flushing
    assert texts(await frail.read_stream(run)) == ["before", "during", "also"]


async def test_even_without_a_pen_a_later_append_cannot_land_after_a_refused_one(log: EventLog) -> None:
    """Pipelined appends of one caller: the first meets a conflict, so the second has nothing to follow."""
    run = stream()
    await log.append(change(run, 0, "theirs"))
    outcomes = await asyncio.gather(
        log.append(change(run, 0, "first", "second")),
        log.append(change(run, 2, "third")),
        return_exceptions=True,
    )
    assert [type(one) for one in outcomes] == [VersionConflict, VersionConflict]
    assert texts(await log.read_stream(run)) == ["theirs"]


async def test_a_pen_that_starts_ahead_of_its_stream_is_fenced(log: EventLog) -> None:
    """EVENT-1: its first append must follow what is there."""
    run = stream()
    await log.append(change(run, 0, "a"))
    pen = StreamWriter(log, run, version=Version(5))
    pen.record([said("b")])
    with pytest.raises(Fenced):
        await pen.flush()
    assert texts(await log.read_stream(run)) == ["a"]


async def test_a_change_alongside_is_in_the_same_append(log: EventLog) -> None:
    run, session = stream(), stream()
    pen = StreamWriter(log, run, version=Version(0))
    told = Told(pen)
    pen.record([said("end")], alongside=[change(session, 0, "turn")])
    await pen.flush()
    assert told.committed == [["end"]]
    [end], [turn] = await log.read_stream(run), await log.read_stream(session)
    assert end.at == turn.at


async def test_a_conflict_of_the_stream_alongside_does_not_mean_that_the_run_was_taken(log: EventLog) -> None:
    """Another run of the session ended first: nothing was stored, and a new pen goes on from `version`."""
    run, session = stream(), stream()
    await log.append(change(session, 0, "another run's turn"))
    pen = StreamWriter(log, run, version=Version(0))
    pen.record([said("end")], alongside=[change(session, 0, "turn")])
    with pytest.raises(VersionConflict) as refused:
        await pen.flush()
    assert refused.value.stream_ids == (session,)
    again = StreamWriter(log, run, version=pen.version)
    again.record([said("end")], alongside=[change(session, 1, "turn")])
    await again.flush()
    assert texts(await log.read_stream(session)) == ["another run's turn", "turn"]


async def test_a_cancelled_flush_takes_nothing_with_it(frail: EventLog, proxy: Proxy) -> None:
    run = stream()
    pen = StreamWriter(frail, run, version=Version(0))
    proxy.hold()
    pen.record([said("a")])
    flushing = asyncio.create_task(pen.flush())
    await asyncio.sleep(0)  # it waits
    flushing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flushing
    proxy.let_go()
    pen.record([said("b")])
    await pen.flush()
    assert texts(await frail.read_stream(run)) == ["a", "b"]


async def test_a_barrier_waits_for_what_was_recorded_before_it_and_not_for_more(
    frail: EventLog, proxy: Proxy
) -> None:
    pen = StreamWriter(frail, stream(), version=Version(0))
    pen.record([said("a")])
    flushing = asyncio.create_task(pen.flush())

    def say_more(_: object) -> None:
        proxy.hold()
        pen.record([said("more")])

    pen.on_committed = say_more
    async with asyncio.timeout(PATIENCE_S):
        await flushing
    assert (pen.version, pen.end) == (1, 2)
    pen.on_committed = None
    proxy.let_go()
    await pen.flush()


async def test_nothing_is_stored_after_something_that_cannot_be_encoded(log: EventLog) -> None:
    run = stream()
    pen = StreamWriter(log, run, version=Version(0))
    pen.record([said("a")])
    await pen.flush()
    created = RunCreated(
        tenant="default", kind=RunKind.AGENT, agent="a", input=(), parameters={"not": object()}
    )
    with pytest.raises(TypeError):
        pen.record([created])
    with pytest.raises(TypeError):
        pen.record([said("later")])
    with pytest.raises(TypeError):
        await pen.flush()
    assert texts(await log.read_stream(run)) == ["a"]


async def test_there_must_be_something_to_record(log: EventLog) -> None:
    with pytest.raises(ValueError, match="nothing to record"):
        StreamWriter(log, stream(), version=Version(0)).record([])


async def test_what_may_wait_goes_down_with_what_comes_next(log: EventLog) -> None:
    """One append, in the order in which things were recorded."""
    appends: list[int] = []
    pen = StreamWriter(log, (run := stream()), Version(0))
    pen.on_committed = lambda recorded: appends.append(len(recorded))
    pen.record([said("may wait")], within_s=3600)
    pen.record([said("now")])
    await pen.flush()
    assert appends == [2]
    assert texts(await log.read_stream(run)) == ["may wait", "now"]


async def test_what_may_wait_is_written_by_itself_when_nothing_comes(log: EventLog) -> None:
    written = asyncio.Event()
    pen = StreamWriter(log, stream(), Version(0))
    pen.on_committed = lambda _: written.set()
    pen.record([said("alone")], within_s=0.001)
    await asyncio.wait_for(written.wait(), 5)


async def test_a_barrier_does_not_wait_for_company(log: EventLog) -> None:
    """EVENT-2: the barrier means now."""
    pen = StreamWriter(log, stream(), Version(0))
    pen.record([said("may wait")], within_s=3600)
    await asyncio.wait_for(pen.flush(), 5)
    assert pen.version == 1


async def test_a_pen_that_is_closed_leaves_nothing_unwritten(log: EventLog) -> None:
    pen = StreamWriter(log, (run := stream()), Version(0))
    pen.record([said("may wait")], within_s=3600)
    pen.close()
    await pen.flush()
    assert len(await log.read_stream(run)) == 1
