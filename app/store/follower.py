"""What waits for one reader of one stream."""

import asyncio

import msgspec

from domain.events import Event, Recorded

BUFFER = 128
"""Frames that may wait for one follower."""


class LiveFrame(msgspec.Struct, frozen=True, kw_only=True):
    """Something to show that is not recorded. It has no number and is never repeated.

    `after` is the version of the stream at which it was shown; a follower who is past that has no use for it.
    """

    after: int
    event: Event


Frame = Recorded[Event] | LiveFrame


class Follower:
    """One reader of one stream: where it is, and what waits for it."""

    __slots__ = ("behind", "buffer", "live", "position", "waiter")

    def __init__(self, after: int, live: bool) -> None:
        self.position = after
        self.live = live
        self.behind = True
        """It has to read from the database before the buffer makes sense."""
        self.buffer: list[Frame] = []
        self.waiter: asyncio.Future[None] | None = None

    def offer(self, frames: list[Frame]) -> None:
        """Never waits. Too much at once is dropped, to be read again."""
        if len(self.buffer) + len(frames) > BUFFER:
            self.fall_behind()
        else:
            self.buffer += frames
            self._wake()

    def fall_behind(self) -> None:
        self.buffer.clear()
        self.behind = True
        self._wake()

    def take(self) -> list[Frame]:
        """What comes next, without gap or repeat; a gap turns it to the database."""
        offered, self.buffer = self.buffer, []
        taken: list[Frame] = []
        for frame in offered:
            if isinstance(frame, LiveFrame):
                if frame.after >= self.position:
                    taken.append(frame)
            elif frame.sequence == self.position + 1:
                self.position = frame.sequence
                taken.append(frame)
            elif frame.sequence > self.position:
                self.behind = True
                break
        return taken

    async def wait(self) -> None:
        self.waiter = asyncio.get_running_loop().create_future()
        try:
            await self.waiter
        finally:
            self.waiter = None

    def _wake(self) -> None:
        if self.waiter and not self.waiter.done():
            self.waiter.set_result(None)
