"""The tools of the agents that are asked."""

from tracon import tool


@tool(effect="read", safe_to_repeat=True)
def look(what: str) -> str:
    """Look something up."""
    return f"42, if {what} is what you ask"


@tool(effect="destructive", requires_approval=True)
def cancel(order_id: str) -> str:
    """Stop an order, if somebody approves of it."""
    return f"{order_id}, cancelled"
