"""The identifiers of the domain, and the stream each thing's events live in."""

from typing import NewType
from uuid import UUID, uuid5

RunId = NewType("RunId", UUID)
StreamId = NewType("StreamId", UUID)
Version = NewType("Version", int)

DEFAULT_TENANT = "default"

# Fixed for ever: a session's stream id is computed from its name, never looked up.
_SESSIONS = UUID("5d1f7a86-6c0e-5b0e-9a55-0d6a2e1f4c11")


def run_stream(run_id: RunId) -> StreamId:
    """A run's stream carries the run's own id."""
    return StreamId(run_id)


def session_stream(tenant: str, session_id: str) -> StreamId:
    """The same name in two tenants is two sessions. The length keeps ("a", "bc") apart from ("ab", "c")."""
    return StreamId(uuid5(_SESSIONS, f"{len(tenant)}:{tenant}{session_id}"))
