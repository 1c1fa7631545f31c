"""Whether what a run held is freed when it is over, without a search for cycles of objects."""

import asyncio
import gc
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from app.supervision.live_actor import LiveActor
from app.supervision.roster import Roster

Parts = list[weakref.ref[Any]]


@contextmanager
def no_search() -> Iterator[None]:
    """Nothing looks for cycles."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def noting(
    monkeypatch: pytest.MonkeyPatch, roster: Roster, held: Callable[[LiveActor], Iterable[object]]
) -> Parts:
    """What the actors hold that the roster starts from now on, as `held` tells it of each."""
    begin, parts = roster.start, Parts()

    def noted(actor: LiveActor) -> asyncio.Task[None]:
        parts.extend(weakref.ref(part) for part in held(actor))
        return begin(actor)

    monkeypatch.setattr(roster, "start", noted)
    return parts


def are_freed(parts: Parts) -> bool:
    return all(part() is None for part in parts)
