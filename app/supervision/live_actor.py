"""The owner of a live run, whatever the run is of: what it is told, and what all owners have in common."""

import asyncio
from abc import abstractmethod
from collections.abc import Sequence
from typing import assert_never

import msgspec

from app.supervision.actor import Actor
from app.supervision.live_run import LiveRun
from domain.commands import CancelRun, RequestCancel
from domain.ids import RunId


class Cancel(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody wants the run to stop."""

    reason: str = ""


class PenLost(msgspec.Struct, frozen=True):
    """The run's stream can no longer be written from here: it was closed elsewhere, or the store is gone."""

    cause: BaseException


Mail = Cancel | PenLost


class Stop:
    """Whether a run is being ended on purpose, for the actor and for the parts that do its work.

    It is apart from the actor, so that those parts do not refer back to what holds them.
    """

    def __init__(self, live: LiveRun, mail: Sequence[Mail]) -> None:
        self._live = live
        self._mail = mail
        self.deadline: asyncio.Timeout | None = None

    def asked(self) -> bool:
        """Whether the work is being unwound on purpose. What was asked is recorded before what came of it."""
        return self.heed() is not None or (self.deadline is not None and self.deadline.expired())

    def heed(self) -> CancelRun | None:
        """Read the mail. Raise what the pen was lost for."""
        for message in self._mail:
            match message:
                case PenLost(cause=cause):
                    raise cause
                case Cancel(reason=reason):
                    self._live.execute(RequestCancel(reason=reason))
                    return CancelRun(reason=reason, descendants=self._live.ended_below)
                case _:
                    assert_never(message)
        return None


class LiveActor(Actor[Mail]):
    """One task owns one run. It is told what happens, and ends the run once (CANCEL-3)."""

    def __init__(self, live: LiveRun) -> None:
        super().__init__()
        self._live = live
        self._stop = Stop(live, self.mail)

    @property
    def run_id(self) -> RunId:
        return self._live.id

    @property
    def tenant(self) -> str:
        return self._live.tenant

    @property
    def is_cancelled(self) -> bool:
        """Whether it was told to stop. Whoever asks again asks for the same."""
        return any(isinstance(message, Cancel) for message in self.mail)

    @abstractmethod
    async def run(self) -> None:
        """Take the run to its end. Fenced and StoreUnavailable leave it open: somebody else must close it."""

    def release(self) -> None:
        """Give up the pen."""
        self._live.release()
