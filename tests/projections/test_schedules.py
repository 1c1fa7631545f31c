"""The `schedules` view: the same wherever pages end, and the same as the fold of each stream."""

from datetime import timedelta
from uuid import UUID

import asyncpg
import msgspec
from hypothesis import given
from hypothesis import strategies as st

from domain.events import (
    ScheduleDefined,
    ScheduleEvent,
    ScheduleFired,
    SchedulePaused,
    ScheduleRemoved,
    ScheduleResumed,
    ScheduleSkipped,
    ScheduleTriggered,
)
from domain.ids import RunId
from domain.messages import UserMessage
from domain.queueing import QueueSpec, ScheduleDefinition
from domain.schedule import fold
from projections.base import Fact
from projections.schedule_record import record_of
from projections.schedules import Schedules, record_from
from tests.projections.story import NOON, in_one_log, stream
from tests.projections.tables import folded
from tests.projections.test_folds import on_one_database, streams, undone

HOURLY = ScheduleDefinition(
    name="hourly", cron="0 * * * *", agent="support", input=(UserMessage(content="a \0 here"),)
)
BULK = msgspec.structs.replace(HOURLY, queue=QueueSpec(lane="bulk"), session_id="s")
_LATER = NOON + timedelta(hours=1)
FACTS = st.sampled_from(
    [
        ScheduleDefined(definition=HOURLY, next_due=NOON),
        ScheduleDefined(definition=BULK),
        SchedulePaused(),
        ScheduleResumed(next_due=_LATER),
        ScheduleFired(due=NOON, run_id=RunId(UUID(int=7)), next_due=_LATER),
        ScheduleSkipped(due=NOON, until=NOON, next_due=_LATER),
        ScheduleTriggered(run_id=RunId(UUID(int=8))),
        ScheduleRemoved(),
    ]
)
HISTORY = st.lists(FACTS, min_size=1, max_size=8).map(
    lambda facts: [ScheduleDefined(definition=HOURLY, next_due=NOON), *facts]
)


@on_one_database
@given(one=HISTORY, other=HISTORY, cut=st.integers(0, 20))
async def test_a_row_equals_the_fold_of_its_stream_wherever_pages_end(
    pool: asyncpg.Pool, one: list[ScheduleEvent], other: list[ScheduleEvent], cut: int
) -> None:
    """EVENT-6"""
    facts = in_one_log(stream(*one, run_id=UUID(int=1)), stream(*other, run_id=UUID(int=2), tenant="zebra"))
    async with undone(pool) as conn:
        at_once = await folded(conn, Schedules(), facts)
        assert await folded(conn, Schedules(), facts[:cut], facts[cut:]) == at_once
        rows = await conn.fetch("SELECT * FROM schedules ORDER BY schedule_id")
    assert [record_from(row) for row in rows] == [r for r in map(record_of, streams(facts)) if r]


@given(history=HISTORY)
def test_what_is_shown_of_a_schedule_is_what_decisions_read(history: list[ScheduleEvent]) -> None:
    facts: list[Fact] = stream(*history)
    shown, state = record_of(facts), fold(history)
    assert (shown is None) == (state.definition is None)
    if shown is not None:
        assert (shown.definition, shown.next_due) == (state.definition, state.next_due)
        assert (shown.last_due, shown.last_run_id) == (state.last_due, state.last_run_id)
