"""Answers to submissions with a key, and how they are made from a run's events."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from domain.events import IdempotencyKeyCompleted, Recorded, RunEvent


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """All of a response that is kept. `headers` may name Location and Preference-Applied."""

    status: int
    content_type: str
    body: bytes
    headers: Mapping[str, str] = {}

    @property
    def is_kept(self) -> bool:
        """Only a success is given again (IDEM-3)."""
        return 200 <= self.status < 300

    @classmethod
    def kept_in(cls, completed: IdempotencyKeyCompleted) -> "Answer":
        return cls(
            status=completed.status,
            content_type=completed.content_type,
            body=completed.body.encode(),
            headers=completed.headers,
        )


Render = Callable[[Sequence[Recorded[RunEvent]]], Answer]
"""Makes the answer from all events of the run that it is of.

A function of nothing else: any host may make it, at any time, and it must come out the same, byte for byte.
So ids and times in it come from the run's id and its events' times; a clock or a random number would show.
"""


@dataclass(frozen=True, kw_only=True)
class Form:
    """A kind of answer. Its name is recorded with every key, so it is chosen by hand and fixed for ever."""

    name: str
    render: Render
    at_once: bool = False
    """Whether the answer is due when the run is recorded, not when it has ended (Prefer: respond-async)."""
    goes_past_people: bool = False
    """Whether the end of a run that waits for a person is no answer. The key then waits with it, and gets the
    answer of the run that is opened by that person's word."""
