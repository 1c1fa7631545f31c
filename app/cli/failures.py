"""What went wrong, as a line on standard error and an exit status."""

from typing import IO, Any

import asyncpg
import click

from app.settings.errors import SettingsError
from domain.codec import UnknownTopic, UnreadableEvent
from domain.errors import TraconError
from projections.base import BrokenStream


class Failed(click.ClickException):
    """The command could not do what it was asked to. One line, status 1."""

    exit_code = 1

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(f"tracon: {' '.join(self.message.split())}", err=True)


class Refused(click.ClickException):
    """The settings or the application cannot be used: a line for each problem, status 2."""

    exit_code = 2

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.message, err=True)


class Commands(click.Group):
    """A group whose commands raise what the parts raise; it is told to the user here, in one place."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except SettingsError as error:
            raise Refused(str(error)) from error
        except BrokenPipeError:
            raise  # whoever read our output has seen enough; click ends quietly
        except (TraconError, OSError, UnknownTopic, UnreadableEvent, BrokenStream) as error:
            raise Failed(str(error)) from error
        except (asyncpg.UndefinedTableError, asyncpg.UndefinedFunctionError) as error:
            raise Failed("the database is not Tracon's yet: `tracon migrate` makes it so") from error
