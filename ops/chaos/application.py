"""The tools of a trial. Each body says in a file of its host that it began, and that it came to its end."""

import asyncio
import json
import os
import time

from tracon import ToolContext, tool

_LOG = os.environ["CHAOS_TOOL_LOG"]
_EPOCH_S = float(os.environ["CHAOS_EPOCH_S"])


def _note(what: str, name: str, order: str, context: ToolContext) -> None:
    """One line in one write to a file opened for appending: several processes may do that at once."""
    line = {
        "what": what,
        "tool": name,
        "order": order,
        "run_id": str(context.run_id),
        "call_id": context.call_id,
        "call_key": context.call_key,
        "pid": os.getpid(),
        "at": time.monotonic() + _EPOCH_S,  # the time of day may be what this host has wrong
    }
    file = os.open(_LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, json.dumps(line).encode() + b"\n")
    finally:
        os.close(file)


async def _perform(name: str, order: str, for_ms: int, fails: bool, context: ToolContext) -> str:
    _note("began", name, order, context)
    await asyncio.sleep(for_ms / 1000)
    return _ended(name, order, fails, context)


def _ended(name: str, order: str, fails: bool, context: ToolContext) -> str:
    _note("ended", name, order, context)
    if fails:
        raise RuntimeError(f"{name} {order} does not work")
    return f"{name} {order} done"


@tool(effect="read")
async def look(order: str, for_ms: int, fails: bool, context: ToolContext) -> str:
    """Look at an order."""
    return await _perform("look", order, for_ms, fails, context)


@tool(effect="write")
async def note(order: str, for_ms: int, fails: bool, context: ToolContext) -> str:
    """Note something down about an order."""
    return await _perform("note", order, for_ms, fails, context)


@tool(effect="destructive")
async def refund(order: str, for_ms: int, fails: bool, context: ToolContext) -> str:
    """Pay an order back. Twice would be once too often."""
    return await _perform("refund", order, for_ms, fails, context)


@tool(effect="destructive", requires_approval=True)
async def charge(order: str, for_ms: int, fails: bool, context: ToolContext) -> str:
    """Charge for an order, if a person approves of it."""
    return await _perform("charge", order, for_ms, fails, context)


@tool(effect="destructive", safe_to_repeat=True)
async def settle(order: str, for_ms: int, fails: bool, context: ToolContext) -> str:
    """Settle an order. Settling it again changes nothing."""
    return await _perform("settle", order, for_ms, fails, context)


@tool(effect="external")
def notify(order: str, for_ms: int, fails: bool, context: ToolContext) -> str:
    """Write to a customer. It runs in a thread and heeds no cancelling."""
    _note("began", "notify", order, context)
    time.sleep(for_ms / 1000)
    return _ended("notify", order, fails, context)
