"""The `idempotency` view: a row for each key, from nothing but its events."""

from datetime import timedelta
from uuid import UUID

import asyncpg
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import events as e
from domain.idempotency import (
    Complete,
    KeptFor,
    Key,
    KeyCommand,
    KeyedRequest,
    KeyInProgress,
    KeyNotHeld,
    KeyReused,
    Release,
    Reserve,
    decide,
    evolve,
)
from domain.ids import RunId, Version, idempotency_stream
from projections.base import BrokenStream, Fact
from projections.idempotency import Idempotency, record_from
from projections.idempotency_record import KeyRecord, KeyState, advance
from tests.projections.story import NOON
from tests.projections.tables import folded
from tests.projections.test_folds import on_one_database, undone

NAMES = ("ticket-1", "ticket-2")


@st.composite
def key_histories(draw: st.DrawFn) -> list[Fact]:
    """What requests, runs and operators came to on a few keys of two tenants, in one log."""
    keys: dict[tuple[str, str], Key] = {}
    facts: list[Fact] = []
    for number in range(draw(st.integers(0, 25))):
        place = draw(st.sampled_from([(tenant, name) for tenant in ("acme", "zebra") for name in NAMES]))
        key = keys.get(place, Key())
        now = NOON + timedelta(hours=number)
        try:
            events = decide(key, draw(_command(key, place[1], number, KeptFor(age_s=3600.0, now=now))))
        except (KeyInProgress, KeyNotHeld, KeyReused):
            continue
        for event in events:
            fact: e.Recorded[e.IdempotencyEvent] = e.Recorded(
                stream_id=idempotency_stream(*place),
                sequence=Version(key.version + 1),
                position=len(facts) + 1,
                at=now,
                tenant=place[0],
                event=event,
            )
            keys[place] = key = evolve(key, fact)
            facts.append(fact)
    return facts


def _command(key: Key, name: str, number: int, kept: KeptFor) -> st.SearchStrategy[KeyCommand]:
    run_id = key.reserved.run_id if key.reserved else RunId(UUID(int=999))
    request = KeyedRequest.of(name, "POST", "/run", b"{}")
    return st.sampled_from(
        [
            Reserve(request=request, run_id=RunId(UUID(int=number + 1)), form="run", kept=kept),
            Complete(reserved_by=run_id, run_id=run_id, status=200, content_type="text/plain", body="a"),
            Release(reserved_by=run_id, run_id=RunId(UUID(int=77)), reason="run\0failed"),
        ]
    )


def records_of(facts: list[Fact]) -> list[KeyRecord]:
    records: dict[UUID, KeyRecord] = {}
    for fact in facts:
        record = advance(records.get(fact.stream_id), fact)
        assert record is not None
        records[fact.stream_id] = record
    return sorted(records.values(), key=lambda record: record.stream_id)


@on_one_database
@given(key_histories())
async def test_a_row_equals_the_fold_of_the_keys_stream(pool: asyncpg.Pool, facts: list[Fact]) -> None:
    """EVENT-6"""
    async with undone(pool) as conn:
        await folded(conn, Idempotency(), facts)
        rows = [record_from(row) for row in await conn.fetch("SELECT * FROM idempotency ORDER BY stream_id")]
    assert rows == records_of(facts)


@on_one_database
@given(key_histories(), st.integers(1, 7))
async def test_where_pages_end_makes_no_difference(pool: asyncpg.Pool, facts: list[Fact], size: int) -> None:
    """EVENT-6: a rebuilt view has the rows of one that followed the log bit by bit."""
    pages = [facts[start : start + size] for start in range(0, len(facts), size)]
    async with undone(pool) as conn:
        at_once = await folded(conn, Idempotency(), facts)
        assert await folded(conn, Idempotency(), *pages) == at_once


def fact(event: e.Event, sequence: int) -> Fact:
    return e.Recorded(
        stream_id=idempotency_stream("acme", "k"),
        sequence=Version(sequence),
        position=sequence,
        at=NOON + timedelta(minutes=sequence),
        tenant="acme",
        event=event,
    )


RESERVED = e.IdempotencyKeyReserved(
    key="k", method="POST", path="/run", fingerprint="f", run_id=RunId(UUID(int=1)), form="run"
)
COMPLETED = e.IdempotencyKeyCompleted(
    run_id=RunId(UUID(int=2)), status=200, content_type="text/plain", body="a"
)
RELEASED = e.IdempotencyKeyReleased(run_id=RunId(UUID(int=2)), reason="run_failed")


def test_a_record_says_what_the_key_stands_for() -> None:
    """IDEM-5"""
    reserved = advance(None, fact(RESERVED, 1))
    assert reserved is not None
    assert (reserved.state, reserved.run_id, reserved.settled_at) == (KeyState.IN_PROGRESS, UUID(int=1), None)
    completed = advance(reserved, fact(COMPLETED, 2))
    assert completed is not None
    assert (completed.state, completed.status, completed.settled_by) == (KeyState.COMPLETED, 200, UUID(int=2))
    released = advance(reserved, fact(RELEASED, 2))
    assert released is not None
    assert (released.state, released.reason) == (KeyState.RELEASED, "run_failed")
    anew = advance(released, fact(msgspec.structs.replace(RESERVED, run_id=RunId(UUID(int=3))), 3))
    assert anew is not None
    assert (anew.state, anew.run_id, anew.reason, anew.settled_at) == (
        KeyState.IN_PROGRESS, UUID(int=3), None, None,
    )  # fmt: skip


@pytest.mark.parametrize("broken", [fact(COMPLETED, 1), fact(RESERVED, 2)])
def test_a_stream_with_a_hole_stops_the_fold(broken: Fact) -> None:
    """EVENT-1"""
    with pytest.raises(BrokenStream):
        advance(None, broken)
