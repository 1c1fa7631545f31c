"""Schedules: defining them, and giving a due time its run exactly once (JOB-2)."""

from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import cast

import msgspec

from app.definitions.lookup import AgentLookup
from app.identity import new_run_id
from app.jobs.cron import BadCron, CronCalendar
from app.jobs.submission import SUBMISSION_PATIENCE_S, failed_at_once, queued_run
from app.quotas.quotas import Asked, Quotas
from app.store.event_log import Change, EventLog, VersionConflict
from domain.events import Recorded, ScheduleEvent
from domain.ids import RunId, schedule_stream
from domain.parameters import instantiate
from domain.queueing import ScheduleDefinition, ScheduleFiring
from domain.quota import QuotaExceeded
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
    ScheduleNotFound,
    Skip,
    TriggerSchedule,
    decide,
    fold,
    plan,
)
from projections.schedule_record import ScheduleRecord, record_of

Now = Callable[[], Awaitable[datetime]]
"""Asks the database for the time."""


class Schedules:
    """Every method raises StoreUnavailable; those that take a name, ScheduleNotFound."""

    def __init__(
        self, log: EventLog, agents: AgentLookup, quotas: Quotas, now: Now, *, grace_s: float
    ) -> None:
        self._log = log
        self._agents = agents
        self._quotas = quotas
        self._now = now
        self._grace_s = grace_s

    async def define(self, tenant: str, definition: ScheduleDefinition, *, replace: bool) -> ScheduleRecord:
        """Raise BadCron, AgentNotFound, BadParameter, or ScheduleExists unless it may be replaced."""
        instantiate(await self._agents.agent(tenant, definition.agent), definition.parameters)
        next_due = CronCalendar(definition.cron, definition.time_zone).after(await self._now())
        if next_due is None:
            raise BadCron("cron", f"{definition.cron!r} means a time that never comes")
        command = DefineSchedule(definition=definition, next_due=next_due, replace=replace)
        return await self._execute(tenant, definition.name, lambda _: command)

    async def get(self, tenant: str, name: str) -> ScheduleRecord:
        """Folded from its stream, so that it is never behind."""
        return _found(name, await self._history(tenant, name))

    async def pause(self, tenant: str, name: str) -> ScheduleRecord:
        return await self._execute(tenant, name, lambda _: PauseSchedule())

    async def resume(self, tenant: str, name: str) -> ScheduleRecord:
        """Go on with the next due time from now."""
        now = await self._now()

        def command(schedule: Schedule) -> ScheduleCommand:
            return ResumeSchedule(next_due=_calendar(schedule, name).after(now))

        return await self._execute(tenant, name, command)

    async def remove(self, tenant: str, name: str) -> None:
        """Its runs stay."""
        await self._append(tenant, name, lambda _: RemoveSchedule())

    async def trigger(self, tenant: str, name: str) -> RunId:
        """A run out of turn. Raise QuotaExceeded."""
        run_id = new_run_id()
        schedule = fold(one.event for one in await self._history(tenant, name))
        if schedule.definition is None:
            raise ScheduleNotFound(name)
        async with self._quotas.admitted(tenant, Asked(run_id, schedule.definition.agent)):
            await self._append(tenant, name, lambda _: TriggerSchedule(run_id=run_id))
        return run_id

    async def settle(self, tenant: str, name: str) -> Fire | Skip | None:
        """Do what is due now. None where nothing is, or another host was faster.

        A run that the tenant has no quota for is there all the same, and failed: nobody else would be told.
        """
        schedule = fold(one.event for one in await self._history(tenant, name))
        if schedule.definition is None:
            return None
        due = plan(schedule, _calendar(schedule, name), await self._now(), self._grace_s)
        if due is None:
            return None
        command = FireSchedule(firing=due, run_id=new_run_id()) if isinstance(due, Fire) else due
        try:
            changes = self._changes(tenant, name, schedule, command)
            if isinstance(command, FireSchedule):
                await self._fire(tenant, Asked(command.run_id, schedule.definition.agent), *changes)
            else:
                await self._log.append(*changes)
        except (VersionConflict, NotDue):
            return None
        return due

    async def _fire(self, tenant: str, asked: Asked, own: Change, run: Change) -> None:
        try:
            async with self._quotas.admitted(tenant, asked):
                await self._log.append(own, run)
        except QuotaExceeded as exceeded:
            await self._log.append(own, failed_at_once(run, exceeded.standing.error))

    async def _execute(
        self, tenant: str, name: str, command: Callable[[Schedule], ScheduleCommand]
    ) -> ScheduleRecord:
        await self._append(tenant, name, command)
        return await self.get(tenant, name)

    async def _append(self, tenant: str, name: str, command: Callable[[Schedule], ScheduleCommand]) -> None:
        while True:
            schedule = fold(one.event for one in await self._history(tenant, name))
            changes = self._changes(tenant, name, schedule, command(schedule))
            try:
                if changes:
                    await self._log.append(*changes, patience_s=SUBMISSION_PATIENCE_S)
            except VersionConflict:
                continue
            return

    def _changes(
        self, tenant: str, name: str, schedule: Schedule, command: ScheduleCommand
    ) -> tuple[Change, ...]:
        """The schedule's own facts, and the run that they ask for: all of it is kept, or nothing."""
        events = decide(schedule, name, command)
        if not events:
            return ()
        own = Change(
            stream_id=schedule_stream(tenant, name),
            expected=schedule.version,
            tenant=tenant,
            events=tuple(events),
        )
        definition = schedule.definition
        match command:
            case FireSchedule(firing=firing, run_id=run_id) if definition:
                return own, _run(tenant, definition, run_id, ScheduleFiring(schedule=name, due=firing.due))
            case TriggerSchedule(run_id=run_id) if definition:
                return own, _run(tenant, definition, run_id, ScheduleFiring(schedule=name))
            case _:
                return (own,)

    async def _history(self, tenant: str, name: str) -> list[Recorded[ScheduleEvent]]:
        recorded = await self._log.read_stream(schedule_stream(tenant, name))
        return cast(list[Recorded[ScheduleEvent]], recorded)


def _run(tenant: str, definition: ScheduleDefinition, run_id: RunId, source: ScheduleFiring) -> Change:
    return queued_run(
        run_id,
        tenant,
        definition.agent,
        definition.input,
        msgspec.structs.replace(definition.queue, source=source),
        parameters=definition.parameters,
        session_id=definition.session_id,
    )


def _calendar(schedule: Schedule, name: str) -> CronCalendar:
    if schedule.definition is None:
        raise ScheduleNotFound(name)
    return CronCalendar(schedule.definition.cron, schedule.definition.time_zone)


def _found(name: str, history: list[Recorded[ScheduleEvent]]) -> ScheduleRecord:
    record = record_of(history)
    if record is None:
        raise ScheduleNotFound(name)
    return record
