"""What a provider says that it has counted. Some say it strangely, and no answer is lost over that."""

from typing import Any


def count(told: Any) -> int:
    """A number of tokens. What is no number counts nothing."""
    is_number = isinstance(told, int | float) and not isinstance(told, bool)
    return int(told) if is_number else 0


def counts_in(told: Any) -> dict[str, Any]:
    """The counts in an object; none in what is no object."""
    return told if isinstance(told, dict) else {}
