"""Every projection there is."""

from domain.errors import NotFound
from projections.base import Projection
from projections.runs import Runs
from projections.statistics import Statistics
from projections.tools import Tools

PROJECTIONS: tuple[Projection, ...] = (Runs(), Statistics(), Tools())


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
