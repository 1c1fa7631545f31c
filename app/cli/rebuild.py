"""`tracon rebuild`."""

import asyncio
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress

from app.assembly.stores import open_database, open_log
from app.cli import options
from app.db.pool import closing_pool
from app.settings.whole import Settings
from projections.base import Projection
from projections.catalog import named
from projections.rebuild import RebuildProgress
from projections.rebuild import rebuild as fold_again


@click.command()
@click.argument("name")
@options.database
def rebuild(name: str, config: Path | None, dsn: str | None, data_dir: Path) -> None:
    """Fold the view NAME again from the whole log. The service may run meanwhile."""
    projection = named(name)
    settings = options.settings_of(config, dsn=dsn)
    options.require_data(settings.dsn, data_dir)
    done = asyncio.run(_rebuild(projection, settings, data_dir))
    click.echo(f"{name}: rebuilt from {done.events} events")


async def _rebuild(projection: Projection, settings: Settings, data_dir: Path) -> RebuildProgress:
    async with (
        open_database(settings.dsn, data_dir) as dsn,
        open_log(dsn, settings.store) as log,
        closing_pool(dsn) as pool,
    ):
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            task = progress.add_task(projection.name, total=None)

            def show(done: RebuildProgress) -> None:
                progress.update(task, completed=done.position, total=done.end)

            return await fold_again(projection, pool, log, on_progress=show)
