"""Sessions as the log has them."""

from typing import cast

from app.store.event_log import EventLog
from domain.events import Recorded, SessionEvent
from domain.ids import session_stream
from domain.session import Session, fold


async def load_session(log: EventLog, tenant: str, session_id: str | None) -> Session:
    """The conversation so far; empty for a new session and for none."""
    if session_id is None:
        return Session()
    recorded = await log.read_stream(session_stream(tenant, session_id))
    return fold(cast(list[Recorded[SessionEvent]], recorded))
