"""Which part of a list is asked for."""

from typing import NamedTuple

MOST = 200
_FURTHEST = 2**31 - 1


class Window(NamedTuple):
    """`take` items after the first `skip` (HTTP-2: 1 to 200 of them)."""

    skip: int
    take: int

    @classmethod
    def clamped(cls, skip: int, take: int) -> "Window":
        return cls(min(max(skip, 0), _FURTHEST), min(max(take, 1), MOST))
