"""What went wrong, as a line on standard error and an exit status."""

from typing import IO, Any

import click

from app.settings.errors import SettingsError
from domain.errors import TraconError


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
        except (TraconError, OSError) as error:
            raise Failed(str(error)) from error
