"""Appending, reading and following, as a host does it."""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from app.store.event_log import Change, EventLog, VersionConflict
from domain.ids import Version
from tests.store.samples import change, collect, said, stream, texts


async def test_what_was_appended_is_read_back_as_it_was_told(log: EventLog) -> None:
    """EVENT-1: the sequence counts from 1, and the place and time told are those of the row."""
    run = stream()
    told = await log.append(change(run, 0, "a", "b", tenant="acme"))
    told += await log.append(change(run, 2, "c", tenant="acme"))
    assert await log.read_stream(run) == told
    assert [one.sequence for one in told] == [1, 2, 3]
    assert [one.tenant for one in told] == ["acme"] * 3
    assert texts(told) == ["a", "b", "c"]
    assert all(abs(datetime.now(UTC) - one.at) < timedelta(minutes=1) for one in told)


async def test_the_last_event_of_a_stream_is_read_alone(log: EventLog) -> None:
    run = stream()
    assert await log.read_last(run) is None
    told = await log.append(change(run, 0, "a", "b"))
    assert await log.read_last(run) == told[-1]


async def test_an_append_across_streams_is_written_whole_or_not_at_all(log: EventLog) -> None:
    run, session = stream(), stream()
    await log.append(change(session, 0, "earlier"))
    with pytest.raises(VersionConflict) as refused:
        await log.append(change(run, 0, "end"), change(session, 0, "turn"))
    assert refused.value.stream_ids == (session,)
    assert await log.read_stream(run) == []
    told = await log.append(change(run, 0, "end"), change(session, 1, "turn"))
    assert [one.stream_id for one in told] == [run, session]
    assert await log.read_stream(run) + await log.read_stream(session, after=1) == told


async def test_a_conflict_leaves_its_batch_mates_alone(log: EventLog) -> None:
    """EVENT-4: of many appends in one batch only the one that came too late is refused."""
    taken = stream()
    await log.append(change(taken, 0, "first"))
    others = [stream() for _ in range(20)]
    outcomes = await asyncio.gather(
        *(log.append(change(one, 0, "x")) for one in (*others[:10], taken, *others[10:])),
        return_exceptions=True,
    )
    refused = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    assert [type(one) for one in refused] == [VersionConflict]
    assert isinstance(outcomes[10], VersionConflict)
    for one in others:
        assert texts(await log.read_stream(one)) == ["x"]


async def test_a_version_that_would_leave_a_gap_is_refused(log: EventLog) -> None:
    """EVENT-1: sequence numbers are gapless, whoever appends."""
    run, other = stream(), stream()
    skipping, fine = await asyncio.gather(
        log.append(change(run, 1, "second")), log.append(change(other, 0, "x")), return_exceptions=True
    )
    assert isinstance(skipping, VersionConflict)
    assert skipping.stream_ids == (run,)
    assert not isinstance(fine, BaseException)
    assert await log.read_stream(run) == []


async def test_appends_of_one_stream_may_queue_behind_each_other(log: EventLog) -> None:
    run = stream()
    outcomes = await asyncio.gather(*(log.append(change(run, n, str(n))) for n in range(5)))
    assert texts([one for outcome in outcomes for one in outcome]) == ["0", "1", "2", "3", "4"]


async def test_events_are_never_changed_or_removed(log: EventLog, pool: asyncpg.Pool) -> None:
    """EVENT-1: the table itself refuses."""
    await log.append(change(stream(), 0, "a"))
    for statement in ("UPDATE stored_events SET topic = 'x'", "DELETE FROM stored_events"):
        with pytest.raises(asyncpg.RestrictViolationError, match="never changed"):
            await pool.execute(statement)


async def test_an_append_must_say_something_once_per_stream(log: EventLog) -> None:
    run = stream()
    with pytest.raises(ValueError, match="two changes of one stream"):
        await log.append(change(run, 0, "a"), change(run, 1, "b"))
    with pytest.raises(ValueError, match="changes nothing"):
        await log.append(Change(stream_id=run, expected=Version(0), tenant="default", events=()))


async def test_what_postgres_refuses_for_itself_does_not_fail_its_batch_mates(log: EventLog) -> None:
    """EVENT-4, for refusals other than conflicts: Postgres stores no zero character in a text."""
    good = [stream() for _ in range(3)]
    outcomes = await asyncio.gather(
        log.append(change(good[0], 0, "x")),
        log.append(change(stream(), 0, "x", tenant="\x00")),
        *(log.append(change(one, 0, "x")) for one in good[1:]),
        return_exceptions=True,
    )
    assert [isinstance(one, asyncpg.PostgresError) for one in outcomes] == [False, True, False, False]
    for one in good:
        assert texts(await log.read_stream(one)) == ["x"]


async def test_a_follower_of_a_stream_gets_what_was_and_what_comes(log: EventLog) -> None:
    """EVENT-1: live and replayed are the same events with the same numbers."""
    run = stream()
    told = await log.append(change(run, 0, "a", "b"))
    async with aclosing(log.follow(run, after=1)) as following:
        assert await collect(following, 1) == told[1:]
        told += await log.append(change(run, 2, "c"))
        assert await collect(following, 1) == told[2:]


async def test_a_subscriber_gets_the_whole_log_in_order(log: EventLog) -> None:
    streams = [stream() for _ in range(5)]
    told = [one for s in streams for one in await log.append(change(s, 0, "a", "b"))]
    async with aclosing(log.subscribe(after=0)) as pages:
        assert await collect(pages, 10) == told
        told = await log.append(change(stream(), 0, "later"))
        assert await collect(pages, 1) == told
    assert await log.end_position() == told[-1].position
    assert texts((await log.read_page(after=told[-1].position - 1, limit=10)).events) == ["later"]
    assert said("later") == told[0].event
