"""Streams to fold: the facts of one run after another, each at its place in a log."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from domain.events import Event, Recorded
from domain.ids import RunId, StreamId, Version
from projections.base import Fact

RUN = RunId(UUID("11111111-2222-4333-8444-555555555555"))
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def stream(*events: Event, run_id: UUID = RUN, tenant: str = "acme", after: int = 0) -> list[Fact]:
    """The events as the log would have recorded them, one a minute from noon."""
    return [
        Recorded(
            stream_id=StreamId(run_id),
            sequence=Version(number),
            position=number,
            at=minute(number),
            tenant=tenant,
            event=event,
        )
        for number, event in enumerate(events, after + 1)
    ]


def minute(number: int) -> datetime:
    return NOON + timedelta(minutes=number)


def in_one_log(*streams: Iterable[Fact]) -> list[Fact]:
    """The streams one behind the other, with their positions renumbered."""
    facts = [recorded for one in streams for recorded in one]
    return [
        Recorded(
            stream_id=recorded.stream_id,
            sequence=recorded.sequence,
            position=position,
            at=recorded.at,
            tenant=recorded.tenant,
            event=recorded.event,
        )
        for position, recorded in enumerate(facts, 1)
    ]
