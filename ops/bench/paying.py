"""A tool that begins and does not come back: whoever dies in it leaves an outcome that nobody knows."""

import asyncio

from tracon import tool


@tool(effect="destructive", timeout=3600)
async def pay() -> str:
    """Pay somebody."""
    await asyncio.Event().wait()
    return "paid"
