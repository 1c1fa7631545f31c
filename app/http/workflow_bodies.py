"""What clients send about workflows."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from app.http.bodies import Body, QueueBody
from app.http.errors import BadBody, FieldError
from app.settings import AsyncRunSettings
from app.supervision.run_service import StartRequest
from domain.messages import UserMessage
from domain.queueing import QueueSpec

Word = Annotated[str, Meta(min_length=1)]


class MayQueue(Body, frozen=True, kw_only=True):
    """`queue` goes with `Prefer: respond-async` only."""

    queue: QueueBody | UnsetType = UNSET

    def queue_spec(self, settings: AsyncRunSettings, *, later: bool) -> QueueSpec | None:
        """Raise BadBody or UnknownLane."""
        if later:
            return (self.queue or QueueBody()).spec(settings)
        if self.queue is not UNSET:
            raise _wrong("queue", "goes with Prefer: respond-async only")
        return None


class RunWorkflowBody(MayQueue, frozen=True, kw_only=True):
    message: Word
    """What the workflow is given."""
    session_id: Annotated[str, Meta(min_length=1, max_length=200)] | UnsetType = UNSET
    """Its nodes are told; the conversation of that session gets no turn by it."""

    def request(
        self, tenant: str, workflow: str, queue: QueueSpec | None, *, streaming: bool
    ) -> StartRequest:
        """Raise BadBody for what types cannot say."""
        if not self.message.strip():
            raise _wrong("message", "must not be empty")
        if self.session_id and not self.session_id.isprintable():
            raise _wrong("session_id", "must be printable")
        return StartRequest(
            tenant=tenant,
            agent=workflow,
            messages=(UserMessage(content=self.message),),
            session_id=self.session_id or None,
            streaming=streaming,
            queue=queue,
        )


class ResumeBody(MayQueue, frozen=True, kw_only=True):
    checkpoint: Word | UnsetType = UNSET
    """Left out: the latest one."""


class RespondBody(MayQueue, frozen=True, kw_only=True):
    answer: str
    request_id: Word | UnsetType = UNSET
    """What is answered; it may be left out where there is one request only."""


class GraphQuery(Body, frozen=True, kw_only=True):
    format: Literal["json", "mermaid"] | UnsetType = UNSET
    """In place of the Accept header."""


def _wrong(field: str, what: str) -> BadBody:
    return BadBody(f"{field}: {what}", FieldError(field=f"$.{field}", message=what))
