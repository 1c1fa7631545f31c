"""given(facts).when(command) == facts: a decision as one line."""

from collections.abc import Iterable
from uuid import UUID

import pytest

from domain.commands import RunCommand
from domain.decide import decide
from domain.errors import TraconError
from domain.events import RunEvent
from domain.evolve import fold
from domain.ids import RunId
from domain.run import Run

RUN_ID = RunId(UUID("11111111-2222-4333-8444-555555555555"))


class Given:
    """A run with a past."""

    def __init__(self, facts: Iterable[RunEvent]) -> None:
        self.facts = tuple(facts)
        self.run: Run = fold(RUN_ID, self.facts)

    def when(self, command: RunCommand) -> list[RunEvent]:
        """The facts that follow from the command."""
        return decide(self.run, command)

    def after(self, *commands: RunCommand) -> "Given":
        """The past after these commands, too."""
        given_now = self
        for command in commands:
            given_now = Given((*given_now.facts, *given_now.when(command)))
        return given_now

    def refuses(self, command: RunCommand, error: type[TraconError], match: str | None = None) -> None:
        """The command is refused with this error."""
        with pytest.raises(error, match=match):
            decide(self.run, command)


def given(*facts: RunEvent) -> Given:
    return Given(facts)
