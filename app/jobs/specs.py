"""How a submission is to be queued, checked against what the settings know."""

from app.settings import AsyncRunSettings
from domain.errors import Rejected
from domain.queueing import DEFAULT_LANE, QueueSpec


class UnknownLane(Rejected):
    """No worker serves such a lane. Choose one of those that the message names."""

    code = "unknown_lane"
    field = "queue.lane"

    def __init__(self, lane: str, known: tuple[str, ...]) -> None:
        super().__init__(f"there is no lane {lane!r}; there are: {', '.join(known)}")


def lanes_of(settings: AsyncRunSettings) -> tuple[str, ...]:
    """Every lane that a submission may name."""
    return tuple(dict.fromkeys((*settings.lanes, DEFAULT_LANE)))


def queue_spec(
    settings: AsyncRunSettings,
    *,
    lane: str = DEFAULT_LANE,
    priority: int = 0,
    max_attempts: int | None = None,
) -> QueueSpec:
    """With the settings' own number of attempts where none is given. Raise UnknownLane."""
    if lane not in (known := lanes_of(settings)):
        raise UnknownLane(lane, known)
    return QueueSpec(lane=lane, priority=priority, max_attempts=max_attempts or settings.max_attempts)
