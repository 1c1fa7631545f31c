"""Packing appends into one statement, and its answer back into what each append is told."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import NamedTuple, cast
from uuid import UUID

from app.store.change import Change
from app.store.errors import VersionConflict
from domain.events import Event, Recorded
from domain.ids import Version

Sealed = list[tuple[str, bytes]]
"""Topic and payload of each event of a change."""


class Append:
    """Changes that are written together or not at all, and the future of whoever waits for the outcome."""

    __slots__ = ("changes", "deadline", "events", "outcome", "proven", "resent", "sealed", "size")

    def __init__(
        self, changes: Sequence[Change], sealed: Sequence[Sealed], deadline: float, proven: bool = False
    ) -> None:
        if len(changes) > 1 and len({change.stream_id for change in changes}) < len(changes):
            raise ValueError("one append cannot hold two changes of one stream")
        if not changes or not all(sealed):
            raise ValueError("an append without events changes nothing")
        self.changes = changes
        self.sealed = sealed
        self.events = sum(map(len, sealed))
        self.size = sum([len(state) for parts in sealed for _, state in parts])
        """Bytes of payload."""
        self.deadline = deadline
        """By the loop's clock: how long it may wait once the store is known to be down."""
        self.proven = proven
        """Whether what it follows is known to be stored, which saves the database a look."""
        self.resent = False
        """Whether it was sent before and the answer was lost: it may be stored."""
        self.outcome: asyncio.Future[list[Recorded[Event]]] = asyncio.get_running_loop().create_future()


class Placed(NamedTuple):
    """One event's answer: where it is stored and since when, and whether it is why its append was refused."""

    position: int | None
    at: datetime | None
    refused: bool = False


class _Slot(NamedTuple):
    """One change's place in a batch: the append it belongs to and which of its changes it is."""

    append: int
    part: int
    change: Change
    sealed: Sealed


class Batch:
    """Appends laid out in the one order that every host uses: rows by stream and version.

    Hosts whose batches overlap then wait for each other in a line; in any other order they could deadlock.
    """

    def __init__(self, appends: Sequence[Append]) -> None:
        self.appends = appends
        self._slots = [
            _Slot(number, part, change, sealed)
            for number, append in enumerate(appends)
            for part, (change, sealed) in enumerate(zip(append.changes, append.sealed, strict=True))
        ]
        self._slots.sort(key=lambda slot: slot.change.stream_id.bytes)
        self.events = sum(append.events for append in appends)

    def followed(self) -> tuple[list[UUID], list[int]]:
        """The rows that changes of existing streams say they follow, as far as that is not proven."""
        changes = [
            slot.change
            for slot in self._slots
            if slot.change.expected > 0 and not self.appends[slot.append].proven
        ]
        return [change.stream_id for change in changes], [change.expected for change in changes]

    def numbers(self) -> tuple[list[int], list[bool]]:
        """Per event: which append it belongs to, and whether that one was sent before."""
        numbers = [slot.append for slot in self._slots for _ in slot.sealed]
        return numbers, [self.appends[number].resent for number in numbers]

    def columns(self) -> tuple[list[UUID], list[int], list[str], list[bytes], list[str]]:
        """Per event: stream, version, topic, payload, tenant."""
        streams: list[UUID] = []
        versions: list[int] = []
        topics: list[str] = []
        states: list[bytes] = []
        tenants: list[str] = []
        for _, _, change, sealed in self._slots:
            streams += [change.stream_id] * len(sealed)
            versions += range(change.expected + 1, change.expected + 1 + len(sealed))
            topics += [topic for topic, _ in sealed]
            states += [state for _, state in sealed]
            tenants += [change.tenant] * len(sealed)
        return streams, versions, topics, states, tenants

    def outcomes(
        self, answers: Iterable[Placed]
    ) -> Iterator[tuple[Append, list[Recorded[Event]] | VersionConflict]]:
        """What each append is told, from the answers per event in the order of `columns`."""
        remaining = iter(answers)
        told: list[list[list[Placed]]] = [[[]] * len(append.changes) for append in self.appends]
        for number, part, _, sealed in self._slots:
            told[number][part] = [next(remaining) for _ in sealed]
        for append, per_change in zip(self.appends, told, strict=True):
            placed = list(zip(append.changes, per_change, strict=True))
            yield append, _conflict(placed) or _recorded(placed)


def _conflict(placed: list[tuple[Change, list[Placed]]]) -> VersionConflict | None:
    refusing = [change.stream_id for change, answers in placed if any(answer.refused for answer in answers)]
    return VersionConflict(*refusing) if refusing else None


def _recorded(placed: list[tuple[Change, list[Placed]]]) -> list[Recorded[Event]]:
    return [
        Recorded(
            stream_id=change.stream_id,
            sequence=Version(sequence),
            position=cast(int, answer.position),  # an append is placed whole or refused
            at=cast(datetime, answer.at),
            tenant=change.tenant,
            event=event,
        )
        for change, answers in placed
        for sequence, (event, answer) in enumerate(
            zip(change.events, answers, strict=True), change.expected + 1
        )
    ]
