"""The one tool of the agents."""

from tracon import tool


@tool(effect="read", safe_to_repeat=True)
def look(what: str) -> str:
    """Look out of the window."""
    return "raining"
