"""Coalesces a stream's text: the first piece at once, later ones by the window (EVENT-7)."""

import asyncio
from collections.abc import Callable


class DeltaWindow:
    """Gathers text for up to `window_s` seconds or `max_bytes` bytes, then emits it as one piece.

    `emit` is called from the event loop and must not raise.
    """

    def __init__(self, emit: Callable[[str], None], *, window_s: float, max_bytes: int) -> None:
        self._emit = emit
        self._window_s = window_s
        self._max_bytes = max_bytes
        self._pieces: list[str] = []
        self._bytes = 0
        self._started = False
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        """Take some text; emit now if it is the step's first, or if the gathered text is full."""
        self._pieces.append(text)
        self._bytes += len(text.encode())
        if not self._started or self._bytes >= self._max_bytes:
            self._started = True
            self.flush()
        elif self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._window_s, self.flush)

    def flush(self) -> None:
        """Emit what is gathered, if anything."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._pieces:
            text = "".join(self._pieces)
            self._pieces.clear()
            self._bytes = 0
            self._emit(text)
