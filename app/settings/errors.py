"""What is wrong with the settings, all of it at once."""

from collections.abc import Sequence

import msgspec

from domain.errors import Rejected


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One fault. `source` is the file or the environment variable it was read from; `key` is dotted."""

    source: str
    key: str
    reason: str

    def __str__(self) -> str:
        return f"{self.source}: {self.key}: {self.reason}" if self.key else f"{self.source}: {self.reason}"


class SettingsError(Rejected):
    """The settings cannot be used. Nothing was started; correct every problem that is named."""

    code = "settings_invalid"

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = tuple(problems)
