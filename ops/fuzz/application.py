"""The one tool of the agents that are asked."""

from tracon import tool


@tool(effect="read", safe_to_repeat=True)
def look(what: str) -> str:
    """Look something up."""
    return f"42, if {what} is what you ask"
