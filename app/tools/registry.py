"""The tools of this host, by name."""

from collections.abc import Iterable, Mapping

from app.tools.errors import InvalidTool
from app.tools.tool import Tool as Tool
from domain.tool import ToolSpec


class ToolRegistry:
    """Fixed once it is built: what an agent may call does not change under its runs."""

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for tool in tools:
            if self._tools.setdefault(tool.name, tool) is not tool:
                raise InvalidTool(tool.name, "there are two tools of this name")

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def by_name(self) -> Mapping[str, Tool]:
        return self._tools

    def names(self) -> tuple[str, ...]:
        """All names, in order."""
        return tuple(sorted(self._tools))

    def specs(self, names: Iterable[str]) -> tuple[ToolSpec, ...]:
        """What a model is told of these tools, in this order. Names that are not registered are left out."""
        return tuple(tool.spec for name in names if (tool := self._tools.get(name)))
