"""The `approvals` view: one row for each, the same as a fold of its stream."""

from uuid import UUID

import asyncpg
import pytest

from domain import events as e
from domain.approval import ApprovalState
from domain.ids import RunId, approval_stream
from projections.approval_record import ApprovalRecord, CallToApprove, approval_of
from projections.approvals import Approvals, record_from
from projections.base import Fact
from projections.read.approvals import ApprovalFilter, count_pending, list_approvals, overdue_approvals
from tests.projections.story import minute, stream
from tests.projections.tables import folded

RUN, OTHER, NEXT = (RunId(UUID(int=number)) for number in (1, 2, 3))
CALLS = tuple(
    e.AwaitedCall(call_id=call_id, tool="refund\0", arguments="{}", effect="external")
    for call_id in ("a", "b")
)
DECISIONS = {"a": e.CallDecision(approved=True), "b": e.CallDecision(approved=False, reason="no\0")}
SETTLED: tuple[tuple[e.ApprovalEvent, ApprovalState], ...] = (
    (
        e.ApprovalDecided(run_id=RUN, decisions=DECISIONS, opens=NEXT, by="key", reason="r"),
        ApprovalState.DECIDED,
    ),
    (e.ApprovalExpired(run_id=RUN), ApprovalState.EXPIRED),
    (e.ApprovalWithdrawn(run_id=RUN, by="key", reason="r"), ApprovalState.WITHDRAWN),
)


def asked(run_id: RunId = RUN, *later: e.Event, expires_after_s: float | None = None) -> list[Fact]:
    requested = e.ApprovalRequested(
        run_id=run_id, agent="support", session_id="s", calls=CALLS, expires_after_s=expires_after_s
    )
    return stream(requested, *later, run_id=approval_stream(run_id))


def test_an_approval_that_waits() -> None:
    assert approval_of(asked(expires_after_s=60.0)) == ApprovalRecord(
        id=RUN,
        tenant="acme",
        agent="support",
        session_id="s",
        calls=tuple(
            CallToApprove(call_id=call_id, tool="refund\ufffd", arguments="{}", effect="external")
            for call_id in ("a", "b")
        ),
        events=1,
        requested_at=minute(1),
        expires_at=minute(2),
    )


def test_an_approval_that_was_decided_says_what_of_each_call_and_who_said_it() -> None:
    record = approval_of(asked(RUN, SETTLED[0][0]))
    assert record is not None
    assert [(call.approved, call.reason) for call in record.calls] == [(True, None), (False, "no\ufffd")]
    assert (record.settled_at, record.settled_by, record.reason) == (minute(2), "key", "r")
    assert record.opened_run_id == NEXT


@pytest.mark.parametrize(("settled", "state"), SETTLED)
async def test_the_row_is_the_fold_wherever_pages_end(
    pool: asyncpg.Pool, settled: e.ApprovalEvent, state: ApprovalState
) -> None:
    """EVENT-6"""
    facts = asked(RUN, settled, expires_after_s=60.0)
    async with pool.acquire() as conn:
        together = await folded(conn, Approvals(), facts)
        apart = await folded(conn, Approvals(), facts[:1], facts[1:])
        [row] = await conn.fetch("SELECT * FROM approvals")
    assert together == apart
    record = record_from(row)
    assert record == approval_of(facts)
    assert record.state is state


async def test_those_that_are_overdue_and_those_that_wait_are_found(
    pool: asyncpg.Pool,
) -> None:
    """SINGLE-1: the times of the story are long over by the database's clock."""
    async with pool.acquire() as conn:
        await folded(conn, Approvals(), [*asked(RUN, expires_after_s=60.0), *asked(OTHER)])
    [overdue] = await overdue_approvals(pool, 10)
    assert overdue == (RUN, minute(2))
    assert await overdue_approvals(pool, 10, overdue) == []
    assert await count_pending(pool) == 2
    page = await list_approvals(pool, "acme", ApprovalFilter(state=ApprovalState.PENDING), take=1)
    assert ([one.id for one in page.approvals], page.more) == ([OTHER], True)
    assert (await list_approvals(pool, "zebra")).approvals == []
