"""What operators decide of a key that nobody else can settle (IDEM-5)."""

from collections.abc import Callable

from app.idempotency.answer import Answer
from app.idempotency.keys import Keys
from app.store.event_log import VersionConflict
from domain.errors import NotFound
from domain.idempotency import Complete, Key, KeyCommand, KeyInProgress, KeyNotHeld, Release
from domain.ids import RunId


class KeyNotFound(NotFound):
    """Nobody of this tenant has used this key."""

    code = "idempotency_key_not_found"

    def __init__(self) -> None:
        super().__init__("there is no such Idempotency-Key")


class Decisions:
    """An operator's word on a key in progress. What is at work on this host is not for deciding."""

    def __init__(self, keys: Keys, *, is_live: Callable[[RunId], bool]) -> None:
        self._keys = keys
        self._is_live = is_live

    async def complete(self, tenant: str, name: str, answer: Answer) -> Key:
        """This is what came of it. Raise KeyNotFound, KeyNotHeld, KeyInProgress, or StoreUnavailable."""

        def completion(run_id: RunId) -> KeyCommand:
            return Complete(
                reserved_by=run_id,
                run_id=run_id,
                status=answer.status,
                content_type=answer.content_type,
                body=answer.body.decode(),
                headers=dict(answer.headers),
                by_operator=True,
            )

        return await self._decide(tenant, name, completion)

    async def release(self, tenant: str, name: str) -> Key:
        """It may be done again. Raises the same."""
        return await self._decide(
            tenant, name, lambda run_id: Release(reserved_by=run_id, run_id=run_id, reason="operator")
        )

    async def _decide(self, tenant: str, name: str, command: Callable[[RunId], KeyCommand]) -> Key:
        while True:
            key = await self._keys.load(tenant, name)
            if key.version == 0:
                raise KeyNotFound
            if key.reserved is None:
                raise KeyNotHeld
            if self._is_live(key.reserved.run_id):
                raise KeyInProgress(key.reserved.run_id)
            try:
                return await self._keys.execute(key, tenant, name, command(key.reserved.run_id))
            except VersionConflict:
                continue
