"""Whether a run is still this host's, looked at right before each effect (EVENT-3)."""

from app.store.errors import Fenced
from app.supervision.live_run import LiveRun
from app.supervision.workbench import Workbench
from domain.ids import run_stream


async def make_sure(live: LiveRun, bench: Workbench) -> None:
    """Raise Fenced if somebody else has moved the run, StoreUnavailable if nobody can say.

    This costs nothing while the host's heartbeats are written. A host that was stopped for longer than the
    orphan threshold is in doubt about each of its runs, and asks the log before it does anything for one.
    """
    if bench.presence.sure_of(live.id):
        return
    await live.flush()
    stream, known = run_stream(live.id), live.run.version
    newer = await bench.log.read_stream(stream, after=known, limit=1)
    if newer and newer[0].sequence > live.run.version:
        raise Fenced(stream)
    if newer:
        await live.flush()  # written from here meanwhile, or this says that it was not
    bench.presence.confirm(live.id)
