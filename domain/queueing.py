"""What is recorded of work that waits: how a run is queued, where it comes from, and what a schedule is."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

import msgspec

from domain.agent import Name
from domain.messages import Message

DEFAULT_LANE = "default"

Priority = Annotated[int, msgspec.Meta(ge=-1000, le=1000)]
"""Within a lane the higher one goes first; of equals, the older."""

Attempts = Annotated[int, msgspec.Meta(ge=1, le=100)]
"""What a submission may ask for."""

MOST_ATTEMPTS = 102
"""A workflow's job has two more than `workflows.max_resume_attempts`, which is at most 100 (WF-4)."""


class BatchItem(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="batch"):
    """The run is item `number`, from 0, of a batch."""

    batch_id: UUID
    number: int


class ScheduleFiring(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="schedule"):
    """A schedule wanted the run for this due time; without one, somebody triggered it by hand."""

    schedule: str
    due: datetime | None = None


class TriggerDelivery(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="trigger"):
    """Another system asked for the run in a signed request."""

    trigger: str
    delivery: str


Source = BatchItem | ScheduleFiring | TriggerDelivery


class QueueSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a run waits for a worker."""

    lane: Name = DEFAULT_LANE
    priority: Priority = 0
    max_attempts: Annotated[int, msgspec.Meta(ge=1, le=MOST_ATTEMPTS)] = 1
    """How many workers may have the job before it is given up (JOB-1)."""
    source: Source | None = None
    """What it belongs to, where it is not a submission of its own."""


class MissedFirings(StrEnum):
    """What becomes of due times at which no host was there."""

    SKIP = "skip"
    FIRE_ONCE = "fire_once"


class ScheduleDefinition(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Which run is wanted, and when: `cron` has five fields and is read in `time_zone`."""

    name: Name
    cron: str
    time_zone: str = "UTC"
    agent: str
    input: tuple[Message, ...]
    parameters: dict[str, Any] = {}
    session_id: str | None = None
    missed: MissedFirings = MissedFirings.FIRE_ONCE
    queue: QueueSpec = QueueSpec()
