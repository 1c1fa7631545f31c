"""Joining a text to its continuation by another call, with nothing said twice (CHAIN-14)."""

_TELLING = 20
"""So many characters that end one text and begin the other are a repetition, fewer may be a coincidence."""


class Seam:
    """Fed the continuation as it arrives, gives back what is new in it.

    A model that was asked to go on may begin again from the start, or from some words before the end. While
    that cannot be told yet, text is held back; `rest` gives what is held at the end.
    """

    def __init__(self, before: str) -> None:
        self._before = before
        self._held = ""
        self._joined = not before

    def feed(self, text: str) -> str:
        """The new part of what has come so far; empty while it may still be a repetition."""
        if self._joined:
            return text
        self._held += text
        return "" if self._may_repeat() else self._join()

    def rest(self) -> str:
        """What was held back, when nothing more comes."""
        return "" if self._joined else self._join()

    def _may_repeat(self) -> bool:
        """Whether all that has come is found again in the text before, from its start or towards its end."""
        if self._before.startswith(self._held):
            return True
        start = max(0, len(self._before) - len(self._held) - _LONGEST_OVERLAP)
        return (
            any(
                self._before.startswith(self._held, place)
                for place in range(start, len(self._before) - len(self._held) + 1)
            )
            and len(self._held) < _LONGEST_OVERLAP
        )

    def _join(self) -> str:
        self._joined = True
        if self._held.startswith(self._before):
            return self._held[len(self._before) :]
        return self._held[_overlap(self._before, self._held) :]


_LONGEST_OVERLAP = 400


def _overlap(before: str, after: str) -> int:
    """How much of the end of `before` stands again at the start of `after`, if that tells anything."""
    for size in range(min(len(before), len(after), _LONGEST_OVERLAP), _TELLING - 1, -1):
        if before.endswith(after[:size]):
            return size
    return 0
