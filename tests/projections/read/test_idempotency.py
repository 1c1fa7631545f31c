"""Lists of idempotency keys: one tenant's, newest first, and those that nobody has settled."""

from datetime import timedelta
from uuid import UUID

import asyncpg
import msgspec

from domain import events as e
from domain.failure import ErrorClass
from domain.ids import RunId, Version, idempotency_stream
from domain.run import RunStatus
from projections.base import Fact
from projections.idempotency_record import KeyState
from projections.read.idempotency import KeyPage, list_keys, unsettled
from tests.domain.facts import OPENED
from tests.projections.read.conftest import Show
from tests.projections.read.plans import indexes_used
from tests.projections.story import NOON, in_one_log, minute, stream

ENDED = e.RunFailed(error="gone", error_type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)


def key(number: int, *more: e.Event, tenant: str = "acme") -> list[Fact]:
    run_id = RunId(UUID(int=number))
    reserved = e.IdempotencyKeyReserved(
        key=f"k{number}", method="POST", path="/run", fingerprint="f", run_id=run_id, form="run"
    )
    return [
        e.Recorded(
            stream_id=idempotency_stream(tenant, f"k{number}"),
            sequence=Version(sequence),
            position=sequence,
            at=minute(10 * number + sequence),
            tenant=tenant,
            event=event,
        )
        for sequence, event in enumerate((reserved, *more), 1)
    ]


def completed(number: int) -> e.IdempotencyKeyCompleted:
    return e.IdempotencyKeyCompleted(
        run_id=RunId(UUID(int=number)), status=200, content_type="text/plain", body="a"
    )


def found(page: KeyPage) -> list[tuple[str, KeyState]]:
    return [(entry.key, entry.state) for entry in page.keys]


async def test_the_newest_key_comes_first_and_other_tenants_have_their_own(
    pool: asyncpg.Pool, show: Show
) -> None:
    """HTTP-2"""
    await show(in_one_log(key(1), key(2, completed(2)), key(3, tenant="zebra")))
    assert found(await list_keys(pool, "acme")) == [
        ("k2", KeyState.COMPLETED),
        ("k1", KeyState.IN_PROGRESS),
    ]
    assert found(await list_keys(pool, "zebra")) == [("k3", KeyState.IN_PROGRESS)]
    assert found(await list_keys(pool, "acme", KeyState.COMPLETED)) == [("k2", KeyState.COMPLETED)]


async def test_parts_join_and_say_whether_there_is_more(pool: asyncpg.Pool, show: Show) -> None:
    """HTTP-2"""
    await show(in_one_log(key(1), key(2), key(3)))
    parts = [await list_keys(pool, "acme", skip=skip, take=2) for skip in (0, 2)]
    assert [[name for name, _ in found(part)] for part in parts] == [["k3", "k2"], ["k1"]]
    assert [part.more for part in parts] == [True, False]


async def test_a_key_is_shown_with_what_its_run_has_come_to(pool: asyncpg.Pool, show: Show) -> None:
    """IDEM-5: what is uncertain is listed."""
    await show(in_one_log(key(1), stream(*OPENED, run_id=UUID(int=1)), key(2)))
    assert [entry.run_status for entry in (await list_keys(pool, "acme")).keys] == [None, RunStatus.RUNNING]


async def test_what_nobody_has_settled_is_found_across_tenants(pool: asyncpg.Pool, show: Show) -> None:
    """IDEM-5"""
    await show(
        in_one_log(
            key(1), stream(*OPENED, ENDED, run_id=UUID(int=1)),
            key(2, tenant="zebra"), stream(*OPENED, ENDED, run_id=UUID(int=2), tenant="zebra"),
            key(3, completed(3)), stream(*OPENED, ENDED, run_id=UUID(int=3)),
            key(4), stream(*OPENED, run_id=UUID(int=4)),
        )
    )  # fmt: skip
    assert [one async for one in unsettled(pool, late_s=10.0)] == [("acme", "k1"), ("zebra", "k2")]


async def test_more_than_a_page_is_gone_through_to_its_end(pool: asyncpg.Pool, show: Show) -> None:
    late = [
        [msgspec.structs.replace(fact, at=NOON) for fact in key(number)]
        + stream(*OPENED, ENDED, run_id=UUID(int=number))
        for number in range(1, 251)
    ]
    await show(in_one_log(*late))
    assert len({one async for one in unsettled(pool, late_s=10.0)}) == 250


async def test_a_page_is_read_from_an_index(pool: asyncpg.Pool) -> None:
    await pool.execute(MANY_KEYS)
    await pool.execute("ANALYZE idempotency")
    for state, used in ((None, "idempotency_newest"), ("in_progress", "idempotency_in_progress")):
        assert used in await indexes_used(pool, "list_idempotency", "acme", state, 0, 51)


async def test_the_sweep_looks_at_keys_in_progress_alone(pool: asyncpg.Pool) -> None:
    await pool.execute(MANY_KEYS)
    await pool.execute("ANALYZE idempotency")
    after = (NOON, UUID(int=0), timedelta(seconds=10), 100)
    assert "idempotency_in_progress" in await indexes_used(pool, "unsettled_idempotency", *after)


MANY_KEYS = """
INSERT INTO idempotency (stream_id, tenant_id, key, state, method, path, fingerprint, form, run_id,
                         by_operator, events, reserved_at)
SELECT gen_random_uuid(), 'acme', 'k' || n, CASE WHEN n % 500 = 0 THEN 'in_progress' ELSE 'completed' END,
       'POST', '/run', 'f', 'run', gen_random_uuid(), false, 2,
       timestamptz '2026-03-01' + n * interval '1 minute'
  FROM generate_series(1, 10000) AS n
"""
