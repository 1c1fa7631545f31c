"""An application whose one tool leaves a trace in the world each time that it is run."""

import os
from pathlib import Path

from tracon import Agent, ToolContext, tool

WORLD = Path(os.environ.get("SHOP_WORLD", "."))


@tool(effect="external", safe_to_repeat=True)
def charge(context: ToolContext) -> str:
    """Charge the customer, once for each call key; being asked again tells what was done."""
    charged = WORLD / f"{context.session_id}.{context.call_key}"
    try:
        with charged.open("x") as receipt:
            receipt.write(os.urandom(8).hex())
    except FileExistsError:
        pass
    return charged.read_text()


clerk = Agent("clerk", provider="script", model="clerk", tools=[charge])
