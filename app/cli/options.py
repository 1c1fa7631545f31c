"""Options that several commands share, and what they choose."""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
import msgspec

from app.db.errors import DatabaseUnusable
from app.settings.errors import Problem, SettingsError
from app.settings.load import load_settings
from app.settings.profiles import Profile
from app.settings.whole import Settings

_HOST = r"([^@/?#,:]*|\[[^\]]*\])(:\d+)?"
_DSN = re.compile(rf"postgres(ql)?://([^/?#]*@)?{_HOST}(,{_HOST})*([/?]|$)")

F = TypeVar("F", bound=Callable[..., Any])

config = click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Settings file, TOML or JSON. Variables named TRACON_... stand above it.",
)
app = click.option(
    "--app",
    "app_source",
    metavar="FILE_OR_MODULE",
    help="Python file or module with your tools and agents.",
)
profile = click.option(
    "--profile", type=click.Choice(["default", "production"]), help="Where the settings start from."
)
dsn = click.option(
    "--dsn",
    help="Postgres to use; TRACON_DSN says the same. Without it, a server of our own in the data directory.",
)
data_dir = click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    default=Path(".tracon"),
    show_default=True,
    metavar="DIR",
    help="Where a server of our own keeps its data.",
)
log_level = click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="What goes to standard error.",
)


def database(command: F) -> F:
    """--config, --dsn and --data-dir: all that a command needs to find the log."""
    for option in (data_dir, dsn, config):
        command = option(command)
    return command


def settings_of(config: Path | None, *, dsn: str | None = None, profile: Profile | None = None) -> Settings:
    """The settings with what the command line says on top. Raise SettingsError."""
    settings = load_settings(config, os.environ, profile=profile)
    if dsn:
        settings = msgspec.structs.replace(settings, dsn=dsn)
    if settings.dsn is not None and not _DSN.match(settings.dsn):
        reason = (
            "is not of the form postgresql://user@host:port/database"  # it may hold a password: not shown
        )
        raise SettingsError([Problem(source="settings", key="dsn", reason=reason)])
    return settings


def require_data(dsn: str | None, data_dir: Path) -> None:
    """Refuse to make a new, empty database where the user wants to look into one that exists."""
    if dsn is None and not (data_dir / "cluster").exists():
        raise DatabaseUnusable(
            f"there is no database in {data_dir}: name another with --data-dir, or a --dsn"
        )
