"""An act of the demo: a provider dies, the next one answers, and its circuit opens, half-opens, closes."""

import asyncio

from rich.console import Console

from app.cli.client import Client
from app.cli.story import StoryBroken, heading
from app.http.display import FrameView
from domain.breaker import CircuitStatus

AGENT, PROVIDER = "careful", "shaky"
_POLL_S = 0.1
_BREAK_S = 15.0

_TOLD = {
    "replied": "answers",
    "status": "fails with 503",
    "circuit_open": "is not even called",
}


async def a_provider_dies(console: Console, client: Client) -> None:
    heading(
        console,
        "A provider dies.",
        f"The agent {AGENT} is bound to {PROVIDER}, and has another one behind it.",
    )
    await _ask(console, client, "replied", CircuitStatus.CLOSED)
    await _ask(console, client, "status", CircuitStatus.CLOSED)
    await _ask(console, client, "status", CircuitStatus.OPEN)
    await _ask(console, client, "circuit_open", CircuitStatus.OPEN)
    async with asyncio.timeout(_BREAK_S):
        while (await client.circuits())[PROVIDER] is not CircuitStatus.HALF_OPEN:  # noqa: ASYNC110 - another process
            await asyncio.sleep(_POLL_S)
    console.print("  The break is over: the circuit is half open, and one call may try.")
    await _ask(console, client, "replied", CircuitStatus.CLOSED)


async def _ask(console: Console, client: Client, expected: str, circuit: CircuitStatus) -> None:
    """Ask the agent something, and see what became of its first link."""
    frames = [frame async for frame in client.run(AGENT, "Are you there?")]
    became, by = _first_call(frames), _answered_by(frames)
    now = (await client.circuits())[PROVIDER]
    told = _TOLD.get(became, became)
    instead = "" if by == PROVIDER else f", and {by} answers in its place"
    state = now.replace("_", " ")
    console.print(f"  {PROVIDER} {told}{instead}. Its circuit is [cyan]{state}[/].", soft_wrap=True)
    if (became, now) != (expected, circuit):
        raise StoryBroken(f"{PROVIDER} {told} and its circuit is {now}")
    if (by == PROVIDER) != (became == "replied"):
        raise StoryBroken(f"{by} answered")


def _first_call(frames: list[FrameView]) -> str:
    for frame in frames:
        if frame.type == "ModelReplied":
            return "replied"
        if frame.type == "ModelCallFailed":
            return str(frame.data["failure"]["kind"])
    return "was never called"


def _answered_by(frames: list[FrameView]) -> str:
    replies = [frame.data["provider"] for frame in frames if frame.type == "ModelReplied"]
    return str(replies[-1]) if replies else "nobody"
