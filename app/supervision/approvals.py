"""What people decide of runs that wait for an approval, and what follows from it (TOOL-2).

Everything that follows is in one append with the decision: the run that goes on, the word of it in the stream
of the run that waited. So whoever decides at the same time, or dies right after, changes nothing.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import datetime
from typing import cast

import msgspec

from app.faults import fault_point
from app.identity import new_run_id
from app.store.event_log import Change, EventLog, VersionConflict
from app.supervision.runs import Runs
from app.supervision.sessions import load_session
from domain import approval as a
from domain.commands import AfterwardsCommand, NoteContinued, NoteWaitEnded
from domain.decide import decide as decide_run
from domain.events import ApprovalDecided, ApprovalEvent, CallDecision, Recorded, WaitOver
from domain.ids import RunId, Version, approval_stream, run_stream, session_stream
from domain.run import Run
from domain.session import turn_of

History = list[Recorded[ApprovalEvent]]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody's decision: of each call by its id, or of all that are not named. `by` is their API key."""

    of_all: CallDecision | None = None
    of_each: dict[str, CallDecision] = {}
    by: str | None = None
    reason: str = ""


class Approvals:
    """`heed` withdraws a run that was cancelled before it came to wait, `now` is the database's clock, and
    `max_attempts` is what a run has whose predecessor was not queued."""

    def __init__(
        self,
        log: EventLog,
        runs: Runs,
        heed: Callable[[RunId], Awaitable[object]],
        now: Callable[[], Awaitable[datetime]],
        max_attempts: int,
    ) -> None:
        self._log = log
        self._heed = heed
        self._runs = runs
        self._now = now
        self._max_attempts = max_attempts

    async def history(self, tenant: str, run_id: RunId) -> History:
        """All that was said of the approval. Raise ApprovalNotFound, also for another tenant's (HTTP-2)."""
        recorded = await self._log.read_stream(approval_stream(run_id))
        if not recorded or recorded[0].tenant != tenant:
            raise a.ApprovalNotFound(run_id)
        return cast(History, recorded)

    async def decide(self, tenant: str, run_id: RunId, verdict: Verdict) -> History:
        """Record the decision, and with it the run that goes on. The same once more changes nothing.

        It needs no place on this host, so a host that drains takes it, too (DRAIN-1). Raise ApprovalNotFound,
        IncompleteDecision, DecidedOtherwise, ApprovalClosed, or StoreUnavailable: then say it again.
        """
        while True:
            run, history = await self._as_read(tenant, run_id)
            approval = a.fold(history)
            if approval.is_overdue(await self._now()):
                await self.expire(run_id)
                continue
            events = a.decide(approval, _command(verdict))
            if not events:
                return history
            fault_point("approval.decide.before")
            try:
                await self._log.append(*self._following(run, approval, events))
            except VersionConflict:
                continue  # somebody else was first: see whether it was the same
            fault_point("approval.decide.after")
            return await self.history(tenant, run_id)

    async def withdraw(self, run_id: RunId, *, by: str | None = None, reason: str = "") -> None:
        """Nobody wants the run any more. Raise ApprovalClosed, ApprovalNotFound, StoreUnavailable."""
        ended = NoteWaitEnded(cause=WaitOver.WITHDRAWN, reason=reason)
        await self._close(run_id, a.Withdraw(by=by, reason=reason), ended)

    async def expire(self, run_id: RunId) -> bool:
        """Close it if its time is over, and return whether it is closed now. Raise StoreUnavailable."""
        approval = await self._load(run_id)
        if not approval.is_overdue(await self._now()):
            return approval.state is not a.ApprovalState.PENDING
        with suppress(a.ApprovalClosed):  # somebody was quicker
            await self._close(run_id, a.Expire(), NoteWaitEnded(cause=WaitOver.EXPIRED))
        return True

    async def _close(self, run_id: RunId, command: a.Expire | a.Withdraw, noted: NoteWaitEnded) -> None:
        while True:
            run = await self._runs.load(run_id)  # before its approval: see `_as_read`
            approval = await self._load(run_id)
            events = a.decide(approval, command)
            changes = (self._said(run, approval, events), _note(run, noted), *await self._turn(run))
            try:
                await self._log.append(*changes)
            except VersionConflict:
                continue
            return

    async def _as_read(self, tenant: str, run_id: RunId) -> tuple[Run, History]:
        """The run before the approval: where that is still pending, the run was, too, when it was read.

        Before both, a cancel of the run that nobody has heard of is carried out.
        """
        await self.history(tenant, run_id)
        await self._heed(run_id)
        run = await self._runs.load(run_id)
        return run, await self.history(tenant, run_id)

    def _following(self, run: Run, approval: a.Approval, events: list[ApprovalEvent]) -> tuple[Change, ...]:
        [decided] = events
        assert isinstance(decided, ApprovalDecided)  # noqa: S101 - it is what deciding comes to
        create = a.run_opened_by(run, decided, self._max_attempts)
        opened = Run(id=decided.opens)
        return (
            self._said(run, approval, events),
            Change(
                stream_id=run_stream(opened.id),
                expected=Version(0),
                tenant=_tenant(run),
                events=tuple(decide_run(opened, create)),
            ),
            _note(run, NoteContinued(by=opened.id)),
        )

    async def _load(self, run_id: RunId) -> a.Approval:
        return a.fold(cast(History, await self._log.read_stream(approval_stream(run_id))))

    def _said(self, run: Run, approval: a.Approval, events: list[ApprovalEvent]) -> Change:
        return Change(
            stream_id=approval_stream(run.id),
            expected=approval.version,
            tenant=_tenant(run),
            events=tuple(events),
        )

    async def _turn(self, run: Run) -> tuple[Change, ...]:
        """The turn ends here after all, like one that was cancelled: its session goes on from it."""
        session_id, tenant = run.session_of_turn, _tenant(run)
        if session_id is None:
            return ()
        session = await load_session(self._log, tenant, session_id)
        stream = session_stream(tenant, session_id)
        return (Change(stream_id=stream, expected=session.version, tenant=tenant, events=(turn_of(run),)),)


def _command(verdict: Verdict) -> a.Decide:
    return a.Decide(
        verdict=verdict.of_all,
        verdicts=verdict.of_each,
        opens=new_run_id(),
        by=verdict.by,
        reason=verdict.reason,
    )


def _note(run: Run, command: AfterwardsCommand) -> Change:
    """What the stream of the run that waited says."""
    return Change(
        stream_id=run_stream(run.id),
        expected=Version(run.version),
        tenant=_tenant(run),
        events=tuple(decide_run(run, command)),
    )


def _tenant(run: Run) -> str:
    return run.created.tenant if run.created else ""
