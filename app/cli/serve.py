"""`tracon serve`."""

import asyncio
import os
from pathlib import Path

import click
import msgspec

from app import faults, logs
from app.cli import options
from app.cli.failures import Refused
from app.main import HostOptions
from app.main import serve as run_host
from app.process import new_event_loop, settle_heap
from app.registry import load_app
from app.settings.profiles import Profile
from app.settings.whole import Settings


@click.command()
@options.config
@options.app
@click.option("--host", help="Address to listen on.  [default: 127.0.0.1]")
@click.option("--port", type=click.IntRange(0, 65535), help="0 takes any free port.  [default: 8080]")
@click.option("--no-worker", is_flag=True, help="Take requests only; leave queued runs to other hosts.")
@options.data_dir
@options.dsn
@options.profile
@options.log_level
def serve(
    config: Path | None,
    app_source: str | None,
    host: str | None,
    port: int | None,
    no_worker: bool,
    data_dir: Path,
    dsn: str | None,
    profile: Profile | None,
    log_level: str,
) -> None:
    """Run the service until SIGTERM. Prints its URL when it is ready; logs go to standard error."""
    begin(log_level)
    settings = listening(options.settings_of(config, dsn=dsn, profile=profile), host, port)
    app = load_app(app_source)
    run(
        HostOptions(settings=settings, app=app, data_dir=data_dir, worker=not no_worker),
        ready="Tracon is ready at",
    )


def begin(log_level: str) -> None:
    """What comes before all else: a log, and the crash that a rehearsal asks for."""
    logs.configure(log_level)
    _rehearse(os.environ.get("TRACON_FAULT"))


def run(host: HostOptions, *, ready: str) -> None:
    """Run a host until SIGTERM. `ready` is said before its URL once it is there."""

    def tell(url: str) -> None:
        settle_heap()
        click.echo(f"{ready} {url}")

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(run_host(host, ready=tell))


def listening(settings: Settings, host: str | None, port: int | None) -> Settings:
    """The settings with the address that the command line names, if it names one."""
    given = {name: value for name, value in (("host", host), ("port", port)) if value is not None}
    return msgspec.structs.replace(settings, server=msgspec.structs.replace(settings.server, **given))


def _rehearse(fault: str | None) -> None:
    """Arm the crash that a test or a drill asks for."""
    try:
        if fault:
            faults.arm(fault)
    except ValueError as error:
        raise Refused(f"TRACON_FAULT: {error}") from error
