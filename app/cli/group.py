"""The `tracon` command and its subcommands."""

import click

from app.cli.check_config import check_config
from app.cli.demo import demo
from app.cli.failures import Commands
from app.cli.keys import keys
from app.cli.migrate import migrate
from app.cli.rebuild import rebuild
from app.cli.replay import replay
from app.cli.serve import serve
from app.cli.version import version
from app.cli.worker import worker


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
def tracon() -> None:
    """Runs LLM agents reliably: every run is a stream of events in Postgres."""


for command in (serve, worker, demo, check_config, migrate, replay, rebuild, keys, version):
    tracon.add_command(command)
