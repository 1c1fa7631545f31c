"""`tracon worker`."""

from pathlib import Path

import click

from app.cli import options
from app.cli.serve import begin, listening, run
from app.main import HostOptions
from app.registry import load_app
from app.settings.profiles import Profile


@click.command()
@options.config
@options.app
@click.option("--host", help="Address of probes and metrics.  [default: 127.0.0.1]")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    show_default=True,
    help="Port of probes and metrics; 0 takes any free one.",
)
@options.data_dir
@options.dsn
@options.profile
@options.log_level
def worker(
    config: Path | None,
    app_source: str | None,
    host: str | None,
    port: int,
    data_dir: Path,
    dsn: str | None,
    profile: Profile | None,
    log_level: str,
) -> None:
    """Work on queued runs and fire schedules until SIGTERM. Takes no requests but probes."""
    begin(log_level)
    settings = listening(options.settings_of(config, dsn=dsn, profile=profile), host, port)
    app = load_app(app_source)
    run(
        HostOptions(settings=settings, app=app, data_dir=data_dir, api=False),
        ready="Tracon's worker is ready; probes at",
    )
