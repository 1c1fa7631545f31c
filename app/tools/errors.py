"""What can be wrong with a tool itself, before anybody calls it."""

from domain.errors import Rejected


class InvalidTool(Rejected):
    """The function cannot be a tool as it is written. The message says what to change."""

    code = "invalid_tool"

    def __init__(self, tool: str, reason: str) -> None:
        super().__init__(f"tool {tool!r}: {reason}")
        self.tool = tool
        self.reason = reason
