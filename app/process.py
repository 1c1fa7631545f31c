"""How a process that hosts runs is set up: its event loop, and how seldom it looks for cycles of objects."""

import asyncio
import gc

_NEW_OBJECTS = 20_000
"""So many more made than freed before the youngest are searched for cycles: a few megabytes of them."""


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's, where there is a build of it."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def settle_heap() -> None:
    """What is there when a host is ready stays for good: the search for cycles need not look at it again.

    Nor need it look often: a run that is over is freed by reference counts alone, which has a test. With the
    interpreter's own thresholds a host under load spent a fifth of its time searching.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS, 10, 10)
