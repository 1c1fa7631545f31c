"""How a run ends: its terminal event and, where it has one, its session's turn, in one append."""

from app.faults import fault_point
from app.store.event_log import Change, VersionConflict
from app.store.stream_writer import Fenced
from app.supervision.live_run import LiveRun
from app.supervision.sessions import load_session
from app.supervision.workbench import Workbench
from domain import approval
from domain.commands import AwaitApproval, AwaitInput, CancelRun, CompleteRun, FailRun
from domain.compaction import for_the_session
from domain.decide import decide
from domain.events import SessionTurnAdded
from domain.ids import Version, approval_stream, run_stream, session_stream
from domain.run import RunStatus
from domain.session import turn_of

Ending = CompleteRun | FailRun | CancelRun | AwaitApproval | AwaitInput


async def end_run(live: LiveRun, bench: Workbench, ending: Ending) -> None:
    """End the run and return when that is committed.

    A turn that failed, or never began, does not become part of its session. What it had summarised does.
    """
    fault_point("run.end.before")
    if isinstance(ending, AwaitApproval):
        await _end_waiting(live, bench, ending)
    else:
        await _end(live, bench, ending)
    fault_point("run.end.after")


async def _end(
    live: LiveRun, bench: Workbench, ending: CompleteRun | FailRun | CancelRun | AwaitInput
) -> None:
    created, session_id = live.run.created, live.run.session_of_turn
    has_begun = live.run.status is RunStatus.RUNNING
    has_turn = has_begun and not isinstance(ending, FailRun)
    has_news = has_turn or (has_begun and bool(live.ledger.summaries))
    if created is None or session_id is None or not has_news:
        live.execute(ending)
        await live.flush()
    else:
        turn = (turn_of(live.run),) if has_turn else ()
        await _end_in_session(live, bench, ending, turn, session_id)


async def _end_waiting(live: LiveRun, bench: Workbench, ending: AwaitApproval) -> None:
    """The run ends, and what it waits for can be decided: both at once, or neither (TOOL-2).

    Its turn becomes part of its session when it is over, which may be in another run.
    """
    await live.flush()
    run_change = Change(
        stream_id=run_stream(live.id),
        expected=live.run.version,
        tenant=live.tenant,
        events=tuple(decide(live.run, ending)),
    )
    approval_change = Change(
        stream_id=approval_stream(live.id),
        expected=Version(0),
        tenant=live.tenant,
        events=(approval.request(live.run, ending, bench.approvals.expires_after),),
    )
    try:
        await bench.log.append(run_change, approval_change, patience_s=bench.store.outage_patience)
    except VersionConflict as conflict:
        raise Fenced(run_stream(live.id)) from conflict


async def _end_in_session(
    live: LiveRun, bench: Workbench, ending: Ending, turn: tuple[SessionTurnAdded, ...], session_id: str
) -> None:
    await live.flush()
    session, tenant = live.session, live.tenant
    messages = tuple(message for added in turn for message in added.messages)
    while True:
        run_change = Change(
            stream_id=run_stream(live.id),
            expected=live.run.version,
            tenant=tenant,
            events=tuple(decide(live.run, ending)),
        )
        session_change = Change(
            stream_id=session_stream(tenant, session_id),
            expected=session.version,
            tenant=tenant,
            events=(*turn, *for_the_session(live.id, live.ledger.summaries, session, messages)),
        )
        changes = (run_change, session_change) if session_change.events else (run_change,)
        try:
            await bench.log.append(*changes, patience_s=bench.store.outage_patience)
        except VersionConflict as conflict:
            if await bench.log.read_stream(run_stream(live.id), after=live.run.version, limit=1):
                raise Fenced(run_stream(live.id)) from conflict
            # Another run of the session ended first; this turn follows it.
            session = await load_session(bench.log, tenant, session_id)
        else:
            return
