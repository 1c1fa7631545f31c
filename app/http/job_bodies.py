"""What clients send about queued work: batches and schedules, and filters of jobs."""

from typing import Annotated, Any, ClassVar
from uuid import UUID

from msgspec import UNSET, Meta, UnsetType

from app.http.bodies import Asked, Body, QueueBody
from app.http.errors import BadQuery, FieldError
from app.jobs.batches import Item
from app.settings import AsyncRunSettings
from domain.agent import Name
from domain.queueing import MissedFirings, ScheduleDefinition
from domain.run import RunStatus
from projections.read.jobs import JobFilter

MOST_ITEMS = 1000


class BatchItemBody(Asked, frozen=True, kw_only=True):
    """One item: the same as a submission of its own."""


class BatchBody(Body, frozen=True, kw_only=True):
    """Runs of one `agent`, or of one `workflow`."""

    also: ClassVar[dict[str, Any]] = {"oneOf": [{"required": ["agent"]}, {"required": ["workflow"]}]}
    """What its JSON schema says besides."""

    agent: str | UnsetType = UNSET
    workflow: str | UnsetType = UNSET
    items: Annotated[tuple[BatchItemBody, ...], Meta(min_length=1, max_length=MOST_ITEMS)]
    queue: QueueBody = QueueBody()

    def __post_init__(self) -> None:
        if (self.agent is UNSET) is (self.workflow is UNSET):
            raise ValueError("give exactly one of agent and workflow")

    def plain_items(self) -> list[Item]:
        """Raise BadBody."""
        return [
            Item(
                messages=item.asked(f"items[{number}]."),
                parameters=item.parameters,
                session_id=item.session(f"items[{number}]."),
            )
            for number, item in enumerate(self.items)
        ]


class ReplaceScheduleBody(Asked, frozen=True, kw_only=True):
    """A run that is wanted again and again. `cron` has five fields and is read in `time_zone`."""

    agent: str
    cron: Annotated[str, Meta(min_length=9, max_length=200)]
    time_zone: Annotated[str, Meta(min_length=1, max_length=100)] = "UTC"
    missed: MissedFirings = MissedFirings.FIRE_ONCE
    """What becomes of due times at which no host was there."""
    queue: QueueBody = QueueBody()

    def definition(self, name: str, settings: AsyncRunSettings) -> ScheduleDefinition:
        """Raise BadBody or UnknownLane."""
        return ScheduleDefinition(
            name=name,
            cron=self.cron,
            time_zone=self.time_zone,
            agent=self.agent,
            input=self.asked(),
            parameters=self.parameters,
            session_id=self.session(),
            missed=self.missed,
            queue=self.queue.spec(settings),
        )


class CreateScheduleBody(ReplaceScheduleBody, frozen=True, kw_only=True):
    """The same with a name, which no other schedule of the tenant may have."""

    name: Name


class JobsQuery(Body, frozen=True, kw_only=True):
    """Filters, which must all hold, and the part of the list. `take` is clamped to 1..200 (HTTP-2)."""

    status: RunStatus | UnsetType = UNSET
    lane: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    batch_id: str | UnsetType = UNSET
    schedule: str | UnsetType = UNSET
    skip: int = 0
    take: int = 50

    @property
    def filter(self) -> JobFilter:
        """Raise BadQuery."""
        return JobFilter(
            status=self.status or None,
            lane=self.lane or None,
            agent=self.agent or None,
            batch_id=_uuid("batch_id", self.batch_id) if self.batch_id else None,
            schedule=self.schedule or None,
        )


def _uuid(name: str, text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise BadQuery(f"{name} is no id", FieldError(field=name, message="no id")) from None
