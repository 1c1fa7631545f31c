"""Text reaches the log soon, and not in crumbs."""

import asyncio

from app.supervision.delta_window import DeltaWindow


async def test_the_first_piece_of_a_step_is_emitted_at_once() -> None:
    """EVENT-7: the first delta is not held back."""
    seen: list[str] = []
    window = DeltaWindow(seen.append, window_s=3600, max_bytes=4096)
    window.add("a")
    assert seen == ["a"]


async def test_later_pieces_are_gathered_until_the_window_closes() -> None:
    """EVENT-7: later deltas coalesce for up to the window."""
    emitted = asyncio.Event()
    seen: list[str] = []

    def emit(text: str) -> None:
        seen.append(text)
        if len(seen) == 2:
            emitted.set()

    window = DeltaWindow(emit, window_s=0.01, max_bytes=4096)
    for piece in ("a", "b", "c"):
        window.add(piece)
    assert seen == ["a"]
    await asyncio.wait_for(emitted.wait(), 5)
    assert seen == ["a", "bc"]


async def test_gathered_text_that_is_full_does_not_wait() -> None:
    """EVENT-7: or 4 KiB, whichever is first; the limit counts bytes, not characters."""
    seen: list[str] = []
    window = DeltaWindow(seen.append, window_s=3600, max_bytes=4)
    for piece in ("a", "é", "é", "z"):
        window.add(piece)
    assert seen == ["a", "éé"]
    window.flush()
    assert seen == ["a", "éé", "z"]


async def test_nothing_gathered_is_nothing_emitted() -> None:
    seen: list[str] = []
    window = DeltaWindow(seen.append, window_s=3600, max_bytes=4)
    window.flush()
    assert seen == []
