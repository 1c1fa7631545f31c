"""Schedules: what is due, what was missed, and that a due time is fired once."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import pytest

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
from domain.queueing import MissedFirings, ScheduleDefinition
from domain.schedule import (
    DefineSchedule,
    Fire,
    FireSchedule,
    NotDue,
    PauseSchedule,
    RemoveSchedule,
    ResumeSchedule,
    Schedule,
    ScheduleCommand,
    ScheduleExists,
    ScheduleNotFound,
    Skip,
    TriggerSchedule,
    decide,
    fold,
    plan,
)
from tests.domain.facts import QUESTION

RUN = RunId(UUID(int=1))
HOURLY = ScheduleDefinition(name="hourly", cron="0 * * * *", agent="support", input=(QUESTION,))
SKIPPING = msgspec.structs.replace(HOURLY, missed=MissedFirings.SKIP)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
GRACE_S = 60.0


class Hours:
    """Due at every full hour."""

    def after(self, moment: datetime) -> datetime:
        return self.up_to(moment) + timedelta(hours=1)

    def up_to(self, moment: datetime) -> datetime:
        return moment.replace(minute=0, second=0, microsecond=0)


def hour(number: int) -> datetime:
    return NOON + timedelta(hours=number)


def defined(definition: ScheduleDefinition = HOURLY) -> ScheduleDefined:
    return ScheduleDefined(definition=definition, next_due=NOON)


def planned(late: timedelta, definition: ScheduleDefinition = HOURLY) -> Fire | Skip | None:
    return plan(fold([defined(definition)]), Hours(), NOON + late, GRACE_S)


def when(facts: Iterable[ScheduleEvent], command: ScheduleCommand) -> list[ScheduleEvent]:
    return decide(fold(facts), "hourly", command)


def test_nothing_is_due_before_its_time() -> None:
    assert planned(timedelta(microseconds=-1)) is None


@pytest.mark.parametrize("late_s", [0.0, GRACE_S])
@pytest.mark.parametrize("definition", [HOURLY, SKIPPING])
def test_a_due_time_is_fired_and_the_next_one_planned(late_s: float, definition: ScheduleDefinition) -> None:
    """JOB-2"""
    assert planned(timedelta(seconds=late_s), definition) == Fire(due=NOON, next_due=hour(1))


def test_due_times_that_nobody_fired_are_fired_once_for_all() -> None:
    """JOB-2: three hours were missed; the last of them stands for the others."""
    late = timedelta(hours=2, minutes=30)
    assert planned(late) == Fire(due=hour(2), next_due=hour(3), missed_since=NOON)


def test_one_due_time_that_was_missed_stands_for_itself() -> None:
    assert planned(timedelta(minutes=30)) == Fire(due=NOON, next_due=hour(1))


def test_due_times_that_nobody_fired_are_skipped_on_record() -> None:
    """JOB-2"""
    late = timedelta(hours=2, minutes=30)
    assert planned(late, SKIPPING) == Skip(due=NOON, until=hour(2), next_due=hour(3))


def test_what_is_not_yet_missed_is_not_skipped_with_the_rest() -> None:
    late = timedelta(hours=2, seconds=GRACE_S)
    skipped = planned(late, SKIPPING)
    assert skipped == Skip(due=NOON, until=hour(2), next_due=hour(3))
    late = timedelta(hours=2, seconds=GRACE_S - 1)
    skipped = planned(late, SKIPPING)
    assert isinstance(skipped, Skip)
    assert skipped == Skip(due=NOON, until=hour(1), next_due=hour(2))
    after = fold([defined(SKIPPING), *when([defined(SKIPPING)], skipped)])
    assert plan(after, Hours(), NOON + late, GRACE_S) == Fire(due=hour(2), next_due=hour(3))


def test_a_paused_a_removed_and_an_unknown_schedule_are_never_due() -> None:
    histories: list[list[ScheduleEvent]] = [[defined(), SchedulePaused()], [defined(), ScheduleRemoved()], []]
    for facts in histories:
        assert plan(fold(facts), Hours(), hour(5), GRACE_S) is None


def test_a_firing_is_recorded_with_its_run() -> None:
    facts = when([defined()], FireSchedule(firing=Fire(due=NOON, next_due=hour(1)), run_id=RUN))
    assert facts == [ScheduleFired(due=NOON, run_id=RUN, next_due=hour(1))]
    after = fold([defined(), *facts])
    assert (after.last_due, after.last_run_id, after.next_due) == (NOON, RUN, hour(1))


def test_a_due_time_is_fired_once() -> None:
    """JOB-2: who comes second finds that the schedule has moved on."""
    fire = FireSchedule(firing=Fire(due=NOON, next_due=hour(1)), run_id=RUN)
    facts = [defined(), *when([defined()], fire)]
    with pytest.raises(NotDue):
        when(facts, fire)
    with pytest.raises(NotDue):
        when([defined(), SchedulePaused()], fire)
    with pytest.raises(NotDue):
        when(facts, Skip(due=NOON, until=NOON, next_due=hour(1)))


def test_a_firing_for_missed_times_is_checked_by_the_first_of_them() -> None:
    fire = FireSchedule(firing=Fire(due=hour(2), next_due=hour(3), missed_since=NOON), run_id=RUN)
    told = ScheduleFired(due=hour(2), run_id=RUN, next_due=hour(3), missed_since=NOON)
    assert when([defined()], fire) == [told]


def test_a_name_is_taken_once_unless_it_is_to_be_replaced() -> None:
    assert when([], DefineSchedule(definition=HOURLY, next_due=NOON)) == [defined()]
    with pytest.raises(ScheduleExists):
        when([defined()], DefineSchedule(definition=SKIPPING, next_due=NOON))
    again = DefineSchedule(definition=SKIPPING, next_due=NOON, replace=True)
    assert when([defined()], again) == [defined(SKIPPING)]


def test_a_pause_outlives_a_change_and_ends_with_a_new_due_time() -> None:
    facts: list[ScheduleEvent] = [defined(), SchedulePaused(), defined(SKIPPING)]
    assert fold(facts).paused
    assert when(facts, PauseSchedule()) == []
    assert when(facts, ResumeSchedule(next_due=hour(7))) == [ScheduleResumed(next_due=hour(7))]
    resumed = fold([*facts, ScheduleResumed(next_due=hour(7))])
    assert (resumed.paused, resumed.next_due) == (False, hour(7))
    assert when([defined()], ResumeSchedule(next_due=hour(7))) == []


def test_a_run_out_of_turn_moves_no_due_time() -> None:
    facts = when([defined()], TriggerSchedule(run_id=RUN))
    assert facts == [ScheduleTriggered(run_id=RUN)]
    assert fold([defined(), *facts]).next_due == NOON


def test_a_removed_schedule_is_not_there_and_its_name_is_free() -> None:
    facts = [defined(), *when([defined()], RemoveSchedule())]
    assert fold(facts) == Schedule(version=fold(facts).version)
    with pytest.raises(ScheduleNotFound, match="hourly"):
        when(facts, PauseSchedule())
    assert when(facts, DefineSchedule(definition=HOURLY, next_due=NOON)) == [defined()]


def test_skipping_is_an_event() -> None:
    facts = when([defined()], Skip(due=NOON, until=hour(2), next_due=hour(3)))
    assert facts == [ScheduleSkipped(due=NOON, until=hour(2), next_due=hour(3))]
    assert fold([defined(), *facts]).next_due == hour(3)
