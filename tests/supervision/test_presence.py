"""Whether a host may believe that its runs are still its own."""

import asyncio
from collections.abc import Collection
from uuid import UUID

import pytest

from app.supervision.presence import Presence, Roll
from domain.ids import RunId

THRESHOLD_S = 10.0
ONE, TWO = (RunId(UUID(int=number)) for number in (1, 2))


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def presence(clock: Clock) -> Presence:
    presence = Presence(THRESHOLD_S, clock)
    presence.enter(ONE)
    return presence


def beat(presence: Presence, clock: Clock, took_s: float = 0.0, taken: Collection[RunId] = ()) -> None:
    roll, asked_at = presence.call_roll(), clock.now
    clock.now += took_s
    presence.beaten(roll, taken, asked_at=asked_at, answered_at=clock.now)


def looked_at(presence: Presence, run_id: RunId) -> None:
    """As after a look at its stream, which had not moved."""
    vouched = asyncio.run(presence.vouch(run_id))
    assert vouched is not None
    presence.confirm(run_id, vouched)


def test_before_its_first_heartbeat_a_host_is_sure_of_nothing(presence: Presence) -> None:
    """EVENT-3"""
    assert not presence.sure_of(ONE)


def test_it_is_sure_for_the_threshold_from_when_it_asked(presence: Presence, clock: Clock) -> None:
    """EVENT-3: the database begins to count later than that, so it is the database that is late."""
    beat(presence, clock)
    looked_at(presence, ONE)
    beat(presence, clock, took_s=4)
    clock.now += THRESHOLD_S - 4.1
    assert presence.sure_of(ONE)
    clock.now += 0.2
    assert not presence.sure_of(ONE)


def test_after_a_gap_every_run_is_in_doubt_until_it_was_looked_at(presence: Presence, clock: Clock) -> None:
    """EVENT-3: a process that was stopped wakes up, writes a heartbeat, and knows nothing for all that."""
    presence.enter(TWO)
    beat(presence, clock)
    looked_at(presence, ONE)
    looked_at(presence, TWO)
    clock.now += THRESHOLD_S + 1
    beat(presence, clock)
    assert (presence.sure_of(ONE), presence.sure_of(TWO)) == (False, False)
    looked_at(presence, ONE)
    assert (presence.sure_of(ONE), presence.sure_of(TWO)) == (True, False)
    beat(presence, clock)
    assert not presence.sure_of(TWO), "a further heartbeat settles nothing"


def test_a_gap_may_lie_inside_of_a_heartbeat(presence: Presence, clock: Clock) -> None:
    """EVENT-3: it was sent in time, but nobody knows when it was carried out."""
    beat(presence, clock)
    looked_at(presence, ONE)
    beat(presence, clock, took_s=THRESHOLD_S + 1)
    assert not presence.sure_of(ONE)
    assert asyncio.run(presence.vouch(ONE)) is None, "it says nothing of now"


def test_a_run_that_begins_while_the_host_is_sure_is_sure(presence: Presence, clock: Clock) -> None:
    beat(presence, clock)
    presence.enter(TWO)
    assert presence.sure_of(TWO)


def test_runs_that_others_have_claimed_are_in_doubt_and_told_of(presence: Presence, clock: Clock) -> None:
    """RECON-2: except those that have ended meanwhile."""
    told: list[Collection[RunId]] = []
    presence.on_doubt = told.append
    beat(presence, clock)
    looked_at(presence, ONE)
    beat(presence, clock, taken={ONE, TWO})
    assert told == [{ONE}]
    assert not presence.sure_of(ONE)


def test_a_look_settles_nothing_while_the_run_is_claimed(presence: Presence, clock: Clock) -> None:
    """EVENT-3: whoever has claimed it may be about to close it. A heartbeat that gets it back settles it."""
    beat(presence, clock)
    looked_at(presence, ONE)
    beat(presence, clock, taken={ONE})
    assert asyncio.run(presence.vouch(ONE)) is None
    beat(presence, clock)
    looked_at(presence, ONE)
    assert presence.sure_of(ONE)


def test_a_look_from_before_a_gap_settles_nothing(presence: Presence, clock: Clock) -> None:
    """EVENT-3: the process was stopped between the look and what it was for."""
    beat(presence, clock)
    vouched = asyncio.run(presence.vouch(ONE))
    assert vouched is not None
    clock.now += THRESHOLD_S + 1
    beat(presence, clock)
    presence.confirm(ONE, vouched)
    assert not presence.sure_of(ONE)


def test_a_heartbeat_is_asked_for_where_the_last_one_does_not_do(presence: Presence, clock: Clock) -> None:
    """EVENT-3"""
    asked: list[float] = []

    async def write() -> None:
        asked.append(clock.now)
        beat(presence, clock)

    presence.beat = write
    assert asyncio.run(presence.vouch(ONE)) is not None
    assert asyncio.run(presence.vouch(ONE)) is not None
    clock.now += THRESHOLD_S
    assert asyncio.run(presence.vouch(ONE)) is not None
    assert len(asked) == 2


def test_a_run_is_not_sure_while_another_claim_to_it_does_not_hold(presence: Presence, clock: Clock) -> None:
    """JOB-1, EVENT-3: its heartbeats are one thing, and the lease of its job is another."""
    holds = {ONE: True}
    presence.claims.append(lambda run_id: holds[run_id])
    beat(presence, clock)
    looked_at(presence, ONE)
    assert presence.sure_of(ONE)
    holds[ONE] = False
    assert not presence.sure_of(ONE)


def test_the_roll_has_who_is_live_and_who_ended_since_it_was_last_written(
    presence: Presence, clock: Clock
) -> None:
    presence.leave(ONE)
    presence.enter(TWO)
    assert presence.call_roll() == Roll(live=(TWO,), ended=(ONE,))
    presence.missed()
    assert presence.call_roll().ended == (ONE,), "a heartbeat that was not written has told nobody"
    beat(presence, clock)
    assert presence.call_roll() == Roll(live=(TWO,), ended=())


def test_it_is_steady_from_the_first_heartbeat_after_one_that_failed(
    presence: Presence, clock: Clock
) -> None:
    """RECON-3"""
    assert presence.steady_s == 0
    beat(presence, clock)
    clock.now += 3
    beat(presence, clock)
    clock.now += 4
    assert presence.steady_s == 7
    presence.missed()
    assert presence.steady_s == 0
    beat(presence, clock)
    clock.now += 1
    assert presence.steady_s == 1
