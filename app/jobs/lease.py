"""A lease: who may work on a job, in which term, and for how long its holder may believe so."""

import threading
from collections.abc import Collection, Mapping

import msgspec

from app.clock import elapsed_s
from domain.ids import RunId

TRUSTED_PART = 5 / 6
"""A holder stops some time before its lease runs out, and so does not count on its own clock alone."""


class LeasedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job as it was handed out."""

    run_id: RunId
    lane: str
    term: int
    attempts: int
    """How often it has been leased, this time included."""
    max_attempts: int
    waited_s: float
    """Since its submission, by the database's clock."""


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A lease as its holder sees it."""

    term: int
    trusted_until: float
    """By `app.clock`."""
    begun: bool = False
    """Whether a run was begun under it: then letting it go is the end of an attempt."""


class HeldLeases:
    """The leases of this host. The event loop takes and drops them, the keeper's thread renews them.

    A lease is trusted from when it was *asked for*: the database counts from a later moment, so it cannot run
    out there before it does here.
    """

    def __init__(self, duration_s: float) -> None:
        self.duration_s = duration_s
        self._trusted_s = duration_s * TRUSTED_PART
        self._lock = threading.Lock()
        self._held: dict[RunId, Held] = {}
        self._lost: set[RunId] = set()

    def __len__(self) -> int:
        return len(self._held)

    def take(self, job: LeasedJob, asked_at: float) -> None:
        with self._lock:
            self._held[job.run_id] = Held(term=job.term, trusted_until=asked_at + self._trusted_s)
            self._lost.discard(job.run_id)

    def begun(self, run_id: RunId) -> None:
        """A run was begun under it."""
        with self._lock:
            if held := self._held.get(run_id):
                self._held[run_id] = msgspec.structs.replace(held, begun=True)

    def drop(self, run_id: RunId) -> Held | None:
        """Hold it no longer."""
        with self._lock:
            return self._held.pop(run_id, None)

    def all(self) -> dict[RunId, Held]:
        """As they are at this moment. From any thread."""
        with self._lock:
            return dict(self._held)

    def renewed(self, asked: Mapping[RunId, Held], kept: Collection[RunId], asked_at: float) -> list[RunId]:
        """What became of a renewal. Return the leases that are lost; they are held no longer."""
        trusted_until, lost = asked_at + self._trusted_s, []
        with self._lock:
            for run_id, before in asked.items():
                held = self._held.get(run_id)
                if held is None or held.term != before.term:
                    continue  # dropped while the renewal was under way
                if run_id in kept:
                    self._held[run_id] = msgspec.structs.replace(held, trusted_until=trusted_until)
                else:
                    del self._held[run_id]
                    lost.append(run_id)
            self._lost.update(lost)
        return lost

    def run_out(self, now: float) -> list[RunId]:
        """Take out the leases that may be believed in no longer, and return them."""
        with self._lock:
            lost = [run_id for run_id, held in self._held.items() if held.trusted_until <= now]
            for run_id in lost:
                del self._held[run_id]
            self._lost.update(lost)
        return lost

    def holds(self, run_id: RunId) -> bool:
        """Whether nobody else can have the job by now, if the run is one."""
        held = self._held.get(run_id)
        return run_id not in self._lost if held is None else elapsed_s() < held.trusted_until

    def forget(self, run_id: RunId) -> None:
        """Nothing works on it here any more, so it does not matter whether its lease was lost."""
        with self._lock:
            self._lost.discard(run_id)
