"""Keys as the log has them."""

from typing import cast

from app.store.event_log import Change, EventLog
from domain.events import IdempotencyEvent, Recorded
from domain.idempotency import Key, KeyCommand, decide, evolve, fold
from domain.ids import Version, idempotency_stream


def change_by(key: Key, tenant: str, name: str, command: KeyCommand) -> Change | None:
    """What the command adds to the key's events; None where it is so already. Raise what `decide` raises."""
    events = decide(key, command)
    if not events:
        return None
    return Change(
        stream_id=idempotency_stream(tenant, name),
        expected=Version(key.version),
        tenant=tenant,
        events=tuple(events),
    )


class Keys:
    """Reads and moves keys by their events."""

    def __init__(self, log: EventLog, patience_s: float) -> None:
        self._log = log
        self._patience_s = patience_s

    async def load(self, tenant: str, name: str) -> Key:
        """A key that nobody has used is one without a past."""
        return fold(_of_a_key(await self._log.read_stream(idempotency_stream(tenant, name))))

    async def execute(self, key: Key, tenant: str, name: str, command: KeyCommand) -> Key:
        """The key after the command. Raise VersionConflict where it has moved, or what `decide` raises."""
        change = change_by(key, tenant, name, command)
        if change is None:
            return key
        for recorded in _of_a_key(await self._log.append(change, patience_s=self._patience_s)):
            key = evolve(key, recorded)
        return key


def _of_a_key(recorded: object) -> list[Recorded[IdempotencyEvent]]:
    return cast(list[Recorded[IdempotencyEvent]], recorded)
