"""Settings from text, as if it were in a file."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

from app.settings.errors import Problem
from app.settings.load import Settings, SettingsError, load_settings
from app.settings.profiles import Profile


class Desk:
    """Writes a settings file and loads it. Every test has a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.file = folder / "tracon.toml"

    def load(
        self,
        text: str = "",
        *,
        env: Mapping[str, str] | None = None,
        name: str = "tracon.toml",
        profile: Profile | None = None,
    ) -> Settings:
        self.file = self._folder / name
        self.file.write_text(dedent(text), "utf-8")
        return load_settings(self.file, env or {}, profile=profile)

    def problems(
        self, text: str = "", *, env: Mapping[str, str] | None = None, name: str = "tracon.toml"
    ) -> tuple[Problem, ...]:
        with pytest.raises(SettingsError) as refused:
            self.load(text, env=env, name=name)
        return refused.value.problems

    def refusals(
        self, text: str = "", *, env: Mapping[str, str] | None = None, name: str = "tracon.toml"
    ) -> dict[str, str]:
        """The reason for each key that was refused."""
        return {problem.key: problem.reason for problem in self.problems(text, env=env, name=name)}
