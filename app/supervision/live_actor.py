"""What a host asks of the owner of a live run, whatever the run is of."""

from typing import Protocol

from app.supervision.run_actor import Cancel, PenLost
from domain.ids import RunId


class LiveActor(Protocol):
    """One task owns one run. It is told what happens, and ends the run once."""

    @property
    def run_id(self) -> RunId: ...

    @property
    def tenant(self) -> str: ...

    @property
    def is_cancelled(self) -> bool:
        """Whether it was told to stop."""
        ...

    async def run(self) -> None:
        """Take the run to its end. Fenced and StoreUnavailable leave it open: somebody else must close it."""
        ...

    def tell(self, message: Cancel | PenLost) -> None: ...

    def release(self) -> None:
        """Give up the pen."""
        ...
