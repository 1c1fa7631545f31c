"""An application whose one tool has to be approved of, and leaves a line in the world when it runs."""

import os
from pathlib import Path

from tracon import Agent, ToolContext, tool

WORLD = Path(os.environ.get("APPROVAL_WORLD", "world"))


@tool(effect="destructive", requires_approval=True)
def refund(context: ToolContext) -> str:
    """Refund the customer."""
    with WORLD.open("a") as world:
        world.write(f"{context.call_key}\n")
    return "refunded"


clerk = Agent("clerk", provider="script", model="clerk", tools=[refund])
