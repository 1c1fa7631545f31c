"""The identifiers of the domain, and the stream each thing's events live in."""

from typing import NewType
from uuid import UUID, uuid5

RunId = NewType("RunId", UUID)
StreamId = NewType("StreamId", UUID)
Version = NewType("Version", int)

DEFAULT_TENANT = "default"

# Fixed for ever: a session's stream id is computed from its name, never looked up.
_SESSIONS = UUID("5d1f7a86-6c0e-5b0e-9a55-0d6a2e1f4c11")
_SCHEDULES = UUID("0b7c1c52-3f0e-5c7d-8d37-54b1b1d86a02")
_IDEMPOTENCY_KEYS = UUID("8f4b1e0a-2c57-5d3b-9a64-3be0c1f7d925")
_APPROVALS = UUID("a1c9f7d2-6b0e-5f43-8d5a-2e7b9c4f1a66")
_AGENTS = UUID("3e6d0c7b-58f1-5a2c-b7e4-91d2f8a05c3e")
_WORKFLOWS = UUID("7a0e94d2-1c3b-5f86-a2d7-60b4c9e85f17")
_DELIVERIES = UUID("c6a2f0de-9a41-5e0f-b2c8-7d1c9a3e5f43")


def run_stream(run_id: RunId) -> StreamId:
    """A run's stream carries the run's own id."""
    return StreamId(run_id)


def session_stream(tenant: str, session_id: str) -> StreamId:
    """The same name in two tenants is two sessions. The length keeps ("a", "bc") apart from ("ab", "c")."""
    return StreamId(uuid5(_SESSIONS, f"{len(tenant)}:{tenant}{session_id}"))


def idempotency_stream(tenant: str, key: str) -> StreamId:
    """The same key in two tenants is two keys. Whoever writes the stream's next version has the key."""
    return StreamId(uuid5(_IDEMPOTENCY_KEYS, f"{len(tenant)}:{tenant}{key}"))


def schedule_stream(tenant: str, name: str) -> StreamId:
    """A schedule's name is its own in its tenant: the stream's first version decides who has it."""
    return StreamId(uuid5(_SCHEDULES, f"{len(tenant)}:{tenant}{name}"))


def approval_stream(run_id: RunId) -> StreamId:
    """What a run that waits asked for. A run waits once, so its id is the approval's too."""
    return StreamId(uuid5(_APPROVALS, str(run_id)))


def workflow_stream(tenant: str, name: str) -> StreamId:
    """A workflow that is defined over HTTP is its tenant's own."""
    return StreamId(uuid5(_WORKFLOWS, f"{len(tenant)}:{tenant}{name}"))


def agent_stream(tenant: str, name: str) -> StreamId:
    """An agent's name is its own in its tenant. Each event of the stream is a version of it."""
    return StreamId(uuid5(_AGENTS, f"{len(tenant)}:{tenant}{name}"))


def batch_stream(batch_id: UUID) -> StreamId:
    """A batch's stream carries the batch's own id."""
    return StreamId(batch_id)


def delivered_run(tenant: str, trigger: str, delivery: str) -> RunId:
    """A delivery that is repeated means the run that it had the first time."""
    return RunId(uuid5(_DELIVERIES, f"{len(tenant)}:{tenant}{len(trigger)}:{trigger}{delivery}"))
