"""`tracon replay`."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast
from uuid import UUID

import click
from rich.console import Console

from app.assembly.stores import open_database, open_log
from app.cli import options
from app.cli.event_table import event_table
from app.cli.failures import Failed
from app.http.display import EventView, encode, view_of
from app.settings.whole import Settings
from domain.events import Event, Recorded, RunEvent
from domain.evolve import fold
from domain.ids import RunId, run_stream
from projections.base import RUN_EVENTS


@click.command()
@click.argument("run_id")
@click.option("--json", "as_json", is_flag=True, help="One event per line, as JSON.")
@options.database
def replay(run_id: str, as_json: bool, config: Path | None, dsn: str | None, data_dir: Path) -> None:
    """Print a run's events and check that none is missing."""
    run = _parsed(run_id)
    settings = options.settings_of(config, dsn=dsn)
    recorded = asyncio.run(_read(settings, data_dir, run))
    _print([view_of(one, sys.maxsize) for one in recorded], as_json=as_json)
    _check(recorded)
    status = fold(run, (cast(RunEvent, one.event) for one in recorded)).status
    click.echo(f"{len(recorded)} events without a gap: the run is {status}", err=as_json)


def _parsed(run_id: str) -> RunId:
    try:
        return RunId(UUID(run_id))
    except ValueError as error:
        raise Failed(f"{run_id!r} is not a run id") from error


async def _read(settings: Settings, data_dir: Path, run: RunId) -> list[Recorded[Event]]:
    options.require_data(settings.dsn, data_dir)
    async with open_database(settings.dsn, data_dir) as dsn, open_log(dsn, settings.store) as log:
        recorded = await log.read_stream(run_stream(run))
    if not recorded or type(recorded[0].event) not in RUN_EVENTS:
        raise Failed(f"there is no run {run}")
    return recorded


def _print(events: Sequence[EventView], *, as_json: bool) -> None:
    if as_json:
        for event in events:
            click.echo(encode(event))
    else:
        Console().print(event_table(events))


def _check(recorded: Sequence[Recorded[Event]]) -> None:
    present = {one.sequence for one in recorded}
    missing = [str(n) for n in range(1, recorded[-1].sequence + 1) if n not in present]
    if missing:
        raise Failed(f"the stream has a gap: {', '.join(missing)} of {recorded[-1].sequence} is missing")
