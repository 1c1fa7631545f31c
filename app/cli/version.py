"""`tracon version`."""

import platform
from importlib.metadata import version as version_of

import click

from app.db.binaries import find_binaries
from app.db.errors import DatabaseUnusable


@click.command()
def version() -> None:
    """Print the versions of Tracon, Python and Postgres."""
    click.echo(f"tracon {version_of('tracon')}")
    click.echo(f"Python {platform.python_version()}")
    try:
        found = find_binaries()
    except DatabaseUnusable:
        click.echo("PostgreSQL not found: give the DSN of a server")
    else:
        click.echo(f"PostgreSQL {found.major} in {found.folder}")
