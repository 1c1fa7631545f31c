"""`tracon migrate`."""

import asyncio
from pathlib import Path

import click

from app.assembly.stores import open_database
from app.cli import options
from app.db.migrate import migrate as apply_missing


@click.command()
@options.database
def migrate(config: Path | None, dsn: str | None, data_dir: Path) -> None:
    """Bring the database to the schema of this build."""
    settings = options.settings_of(config, dsn=dsn)
    done = asyncio.run(_migrate(settings.dsn, data_dir))
    for name in done:
        click.echo(f"applied {name}")
    if not done:
        click.echo("nothing to apply: the database is up to date")


async def _migrate(dsn: str | None, data_dir: Path) -> list[str]:
    async with open_database(dsn, data_dir) as address:
        return await apply_missing(address)
