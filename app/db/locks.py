"""File locks that the kernel gives back however their holder ends, kill -9 included."""

import asyncio
import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from app.db.errors import DatabaseUnusable

_POLL_S = 0.01


class FileLock:
    """One hold on a lock file. Two of them exclude each other, also within one process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def try_exclusive(self) -> bool:
        return self._try(fcntl.LOCK_EX)

    def try_shared(self) -> bool:
        return self._try(fcntl.LOCK_SH)

    async def exclusive(self, deadline: float) -> None:
        """Wait for the lock; DatabaseUnusable once the monotonic clock passes `deadline`."""
        await self._wait(fcntl.LOCK_EX, deadline)

    async def shared(self, deadline: float) -> None:
        """Like `exclusive`, beside any number of others who share it."""
        await self._wait(fcntl.LOCK_SH, deadline)

    def release(self) -> None:
        fcntl.flock(self.fd, fcntl.LOCK_UN)

    def close(self) -> None:
        """Give up this hold; harmless when repeated. A child that inherited the descriptor keeps it."""
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def _try(self, operation: int) -> bool:
        try:
            fcntl.flock(self.fd, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    async def _wait(self, operation: int, deadline: float) -> None:
        while not self._try(operation):
            if time.monotonic() > deadline:
                raise DatabaseUnusable(f"another process has held {self._path} for too long")
            await asyncio.sleep(_POLL_S)
