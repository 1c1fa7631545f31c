"""How many jobs this host may work on, lane by lane."""

from collections import Counter

from app.settings import AsyncRunSettings
from domain.queueing import DEFAULT_LANE


class Slots:
    """Lanes come in the order of the settings; the default lane is the last unless it is named there."""

    def __init__(self, settings: AsyncRunSettings) -> None:
        self._most = settings.max_concurrent
        limits = {name: lane.max_concurrent for name, lane in settings.lanes.items()}
        limits.setdefault(DEFAULT_LANE, None)
        self._limits = {name: self._most if limit is None else limit for name, limit in limits.items()}
        self._busy: Counter[str] = Counter()

    @property
    def free(self) -> int:
        """In all lanes together."""
        return self._most - self._busy.total()

    def by_lane(self) -> dict[str, int]:
        """The lanes that have any, in their order."""
        free = {lane: min(limit - self._busy[lane], self.free) for lane, limit in self._limits.items()}
        return {lane: number for lane, number in free.items() if number > 0}

    def busy(self, lane: str) -> int:
        return self._busy[lane]

    def take(self, lane: str) -> None:
        self._busy[lane] += 1

    def give_back(self, lane: str) -> None:
        self._busy[lane] -= 1
