"""Tools for hosts in processes of their own. What they do, they write down in the folder of the trial."""

import ctypes
import os
import time
from pathlib import Path

from tracon import tool

FOLDER = Path(os.environ["TRIAL"])
BUSY_S = 2.5


def mark(what: str) -> None:
    with (FOLDER / "marks").open("a") as marks:
        marks.write(f"{what}\n")


@tool(effect="write", timeout=60)
def wait_for_go() -> str:
    """Come back when the test says so."""
    mark("waiting")
    while not (FOLDER / "go").exists():
        time.sleep(0.005)
    mark("went")
    return "went"


@tool(effect="destructive")
def destroy() -> str:
    """Destroy something."""
    mark("destroyed")
    return "destroyed"


@tool(effect="read", timeout=60)
def burn() -> str:
    """Keep the interpreter to oneself, about 60 ms at a time."""
    ends_at = time.monotonic() + BUSY_S
    while time.monotonic() < ends_at:
        sum(range(4_000_000))
    return "burnt"


@tool(effect="read", timeout=60)
def seize() -> str:
    """Stop the whole interpreter, as C code does that never lets go of it. No thread of the host turns."""
    mark("seizing")
    ctypes.PyDLL(None).usleep(int(BUSY_S * 1_000_000))
    mark("seized")
    return "seized"


@tool(effect="read", timeout=60)
async def block() -> str:
    """Keep the event loop to oneself."""
    time.sleep(BUSY_S)  # noqa: ASYNC251 - that is the point
    return "blocked"
