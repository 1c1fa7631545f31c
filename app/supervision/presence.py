"""Which runs this host answers for, and whether it may still believe that nobody has taken them from it."""

import threading
from collections.abc import Awaitable, Callable, Collection, Iterable

import msgspec

from app.clock import elapsed_s
from domain.ids import RunId


class Roll(msgspec.Struct, frozen=True, kw_only=True):
    """The host's runs at one moment, for its next heartbeat."""

    live: tuple[RunId, ...]
    ended: tuple[RunId, ...]
    """Those that have ended since the last heartbeat that was written."""


class Presence:
    """Runs are entered and left in the event loop; the heartbeat's thread calls the roll.

    A host that has been heard of holds its runs for `threshold_s` from when it *asked* to be, since the
    database counts from a later moment. While that time runs, no other host can have found them silent. When
    it was interrupted (the process was stopped, the database away), every run is in doubt, and `sure_of` says
    so before each effect. Another host may just be closing it: that one has claimed it first, and closes it
    then. So a heartbeat has to vouch for it again, and its stream is looked at after that.
    """

    def __init__(self, threshold_s: float, clock: Callable[[], float] = elapsed_s) -> None:
        self._threshold_s = threshold_s
        self._clock = clock
        self._lock = threading.Lock()
        self._live: set[RunId] = set()
        self._ended: set[RunId] = set()
        self._doubtful: set[RunId] = set()
        self._doubts = 0
        self._vouched: set[RunId] = set()
        self._holds_until = float("-inf")
        self._steady_since: float | None = None
        self.on_doubt: Callable[[Collection[RunId]], None] | None = None
        """Told, in the event loop, of runs that a heartbeat has found to be somebody else's."""
        self.beat: Callable[[], Awaitable[None]] | None = None
        """Have a heartbeat written now, or tried to."""
        self.claims: list[Callable[[RunId], bool]] = []
        """What else must hold for a run to be this host's: the lease of its job, for one."""

    def enter(self, run_id: RunId) -> None:
        """Answer for a run, from the next heartbeat on."""
        with self._lock:
            self._live.add(run_id)
            self._ended.discard(run_id)

    def leave(self, run_id: RunId) -> None:
        """The run has ended, or is somebody else's: let its row go."""
        with self._lock:
            self._live.discard(run_id)
            self._ended.add(run_id)
        self._doubtful.discard(run_id)

    def answers_for(self, run_id: RunId) -> bool:
        """Whether the run is at work on this host, though a heartbeat may not have said so yet."""
        return run_id in self._live

    def call_roll(self) -> Roll:
        """From any thread."""
        with self._lock:
            return Roll(live=tuple(self._live), ended=tuple(self._ended))

    def beaten(self, roll: Roll, taken: Iterable[RunId], *, asked_at: float, answered_at: float) -> None:
        """A heartbeat was written. `taken`: runs of the roll that it found to be somebody else's."""
        with self._lock:
            self._ended.difference_update(roll.ended)
            taken = self._live.intersection(taken)
            interrupted = answered_at >= self._holds_until
            if interrupted:
                self._doubtful |= self._live
        self._doubtful |= taken
        self._doubts += bool(interrupted or taken)
        self._vouched = set(roll.live) - taken
        self._holds_until = asked_at + self._threshold_s
        if self._steady_since is None:
            self._steady_since = answered_at
        if taken and self.on_doubt:
            self.on_doubt(taken)

    def missed(self) -> None:
        """A heartbeat could not be written."""
        self._steady_since = None

    @property
    def steady_s(self) -> float:
        """For how long every heartbeat has been written."""
        return 0.0 if self._steady_since is None else self._clock() - self._steady_since

    @property
    def silent_s(self) -> float:
        """How long ago the last heartbeat that was written was asked for."""
        return max(0.0, self._clock() - (self._holds_until - self._threshold_s))

    def sure_of(self, run_id: RunId) -> bool:
        """Whether nobody can have closed the run by now. If not: `vouch`, look at its stream, `confirm`."""
        if self._clock() >= self._holds_until or run_id in self._doubtful:
            return False
        return all(holds(run_id) for holds in self.claims)

    async def vouch(self, run_id: RunId) -> int | None:
        """Have a heartbeat say that the run is this host's, unless the last one has said it.

        Return what `confirm` takes. None: it could not be said, or somebody has claimed the run.
        """
        if not self._is_vouched_for(run_id) and self.beat is not None:
            await self.beat()
        return self._doubts if self._is_vouched_for(run_id) else None

    def confirm(self, run_id: RunId, vouched: int) -> None:
        """The run's stream was looked at after `vouch`: it is this host's, unless a doubt arose meanwhile."""
        if vouched == self._doubts:
            self._doubtful.discard(run_id)

    def _is_vouched_for(self, run_id: RunId) -> bool:
        return run_id in self._vouched and self._clock() < self._holds_until
