"""Every projection there is."""

from collections.abc import Mapping

from domain.errors import NotFound
from projections.approvals import Approvals
from projections.base import Projection
from projections.definitions import Agents, Workflows
from projections.idempotency import Idempotency
from projections.jobs import Jobs
from projections.projector import Pace
from projections.runs import Runs
from projections.schedules import Schedules
from projections.statistics import Statistics
from projections.tools import Tools

PROJECTIONS: tuple[Projection, ...] = (
    Runs(),
    Statistics(),
    Tools(),
    Jobs(),
    Schedules(),
    Idempotency(),
    Approvals(),
    Agents(),
    Workflows(),
)

PACES: Mapping[str, Pace] = {Jobs.name: Pace(breath_s=0.01, gather_s=0.0)}
"""Of those that somebody waits for: a worker hears of a job when its row is there."""


class UnknownProjection(NotFound):
    """There is no projection of this name. The message lists those there are."""

    code = "unknown_projection"

    def __init__(self, name: str) -> None:
        known = ", ".join(projection.name for projection in PROJECTIONS)
        super().__init__(f"there is no projection {name!r}; there are: {known}")
        self.name = name


def named(name: str) -> Projection:
    """Raises UnknownProjection."""
    for projection in PROJECTIONS:
        if projection.name == name:
            return projection
    raise UnknownProjection(name)
