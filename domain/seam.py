"""Joining a text to its continuation by another call, with nothing said twice and nothing lost (CHAIN-14)."""

_TELLING = 20
"""So many characters that end one text and begin the other are a repetition; fewer may be a coincidence."""


class Seam:
    """Fed the continuation as it arrives, gives back what is new in it.

    A model that was asked to go on may begin again, from the start or from some words before the end. Text
    that stands in what was said before is held back until it is clear where it leads.
    """

    def __init__(self, before: str) -> None:
        self._before = before
        self._held = ""
        self._joined = not before

    def feed(self, text: str) -> str:
        """What of the text, and of what was held back, is new; empty while that cannot be told."""
        if self._joined:
            return text
        self._held += text
        return "" if self._held in self._before else self._join()

    def rest(self) -> str:
        """What was held back and is new, when nothing more comes."""
        return "" if self._joined else self._join()

    def _join(self) -> str:
        self._joined = True
        return self._held[repeated(self._before, self._held) :]


def repeated(before: str, after: str) -> int:
    """How many characters that end `before` stand again at the start of `after`, if they tell anything."""
    for size in range(min(len(before), len(after)), 0, -1):
        if before.endswith(after[:size]) and _is_telling(before, size):
            return size
    return 0


def _is_telling(before: str, size: int) -> bool:
    """A long end, the whole text, or white space: models are often not shown the last of it."""
    return size >= _TELLING or size == len(before) or before[-size:].isspace()
