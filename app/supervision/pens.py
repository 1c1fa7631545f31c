"""The pen of a run's actor."""

from functools import partial

from app.store.stream_writer import StreamWriter
from app.supervision.live_actor import PenLost
from app.supervision.roster import Roster
from app.supervision.workbench import Workbench
from domain.ids import RunId, Version, run_stream
from domain.run import Run


def pen_of(bench: Workbench, roster: Roster, run: Run, version: Version) -> StreamWriter:
    """A pen at the end of the run's stream. Its loss is mail to the run's actor."""
    pen = StreamWriter(
        bench.log,
        run_stream(run.id),
        version=version,
        tenant=run.created.tenant if run.created else "",
        patience_s=bench.store.outage_patience,
    )
    pen.on_lost = partial(_lost, roster, run.id)
    return pen


def _lost(roster: Roster, run_id: RunId, cause: BaseException) -> None:
    if actor := roster.find(run_id):
        actor.tell(PenLost(cause))
