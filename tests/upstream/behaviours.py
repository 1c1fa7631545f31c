"""Everything that the upstream can do, by the name of the model that is asked for."""

from tests.upstream import answers, breakdowns, refusals
from tests.upstream.registry import BEHAVIOURS

__all__ = ["BEHAVIOURS", "answers", "breakdowns", "refusals"]
