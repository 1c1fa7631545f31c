"""What the views share when they write and delete rows."""

from collections.abc import Iterable, Sequence
from typing import Any

RESET_TIMEOUT_S = 3600.0
"""For deleting all rows of a view in one statement."""


def columns(rows: Iterable[Sequence[Any]]) -> list[list[Any]]:
    """Rows turned into the columns that `unnest` takes. There must be at least one row."""
    return [list(column) for column in zip(*rows, strict=True)]
