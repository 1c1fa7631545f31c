"""How the demo tells its story."""

from rich.console import Console
from rich.text import Text

from app.cli.failures import Failed


class StoryBroken(Failed):
    """The service did not do what the demo says that it does."""

    def __init__(self, what: str) -> None:
        super().__init__(f"the story did not hold: {what}")


def heading(console: Console, what: str, more: str) -> None:
    """The beginning of an act."""
    console.print()
    console.print(Text.assemble((what, "bold"), " ", more), soft_wrap=True)
