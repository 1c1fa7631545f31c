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
        self._place = 0
        """Where the held text stands in the text before it, first of all places."""
        self._joined = not before

    def feed(self, text: str) -> str:
        """What of the text, and of what was held back, is new; empty while that cannot be told."""
        if self._joined:
            return text
        held, self._held = self._held, self._held + text
        if not self._before.startswith(text, self._place + len(held)):
            self._place = self._before.find(self._held, self._place + 1)
        return self._join() if self._place == -1 else ""

    def rest(self) -> str:
        """What was held back and is new, when nothing more comes."""
        return "" if self._joined else self._join()

    def _join(self) -> str:
        self._joined = True
        return self._held[repeated(self._before, self._held) :]


def repeated(before: str, after: str) -> int:
    """How many characters that end `before` stand again at the start of `after`, if they tell anything."""
    longest = min(len(before), len(after))
    if size := _long_repeated(before, after, longest):
        return size
    for size in range(min(longest, _TELLING - 1), 0, -1):
        if before.endswith(after[:size]) and _is_telling(before, size):
            return size
    return 0


def _long_repeated(before: str, after: str, longest: int) -> int:
    """The same for what is long enough to tell by itself. Both texts may be as long as a book."""
    beginning, end = after[:_TELLING], before[-_TELLING:]
    place = before.find(beginning, len(before) - longest)
    while -1 < place <= len(before) - _TELLING:
        size = len(before) - place
        if after.startswith(end, size - _TELLING) and before.endswith(after[:size]):
            return size
        place = before.find(beginning, place + 1)
    return 0


def _is_telling(before: str, size: int) -> bool:
    """The whole text, or white space: models are often not shown the last of it."""
    return size == len(before) or before[-size:].isspace()
