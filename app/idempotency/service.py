"""Submissions with a key: each runs once, and whoever repeats it gets the answer that the first one got."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime

import msgspec

from app.db.errors import StoreUnavailable
from app.idempotency.answer import Answer, Form
from app.idempotency.keys import Keys, change_by
from app.idempotency.settling import Made, Settling
from app.identity import new_run_id
from app.metrics import Metrics
from app.settings import IdempotencySettings
from app.store.event_log import EventLog, VersionConflict
from app.supervision.run_service import StartRequest
from domain.errors import TraconError
from domain.events import IdempotencyKeyCompleted, Recorded, RunEnd, RunEvent
from domain.idempotency import (
    KeptFor,
    Key,
    KeyedRequest,
    KeyInProgress,
    KeyNotHeld,
    KeyReused,
    Release,
    Reserve,
    answer_to,
)
from domain.ids import RunId, run_stream

log = logging.getLogger(__name__)

Submission = Callable[[], Awaitable[StartRequest]]
"""Makes the submission, if it comes to that; raises what is wrong with the request."""

Begin = Callable[[StartRequest], Awaitable[RunId]]
"""Opens the run under the id and with the changes that the submission names: all of it, or it raises."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a request with a key is answered. `events` are those of a run that has come to this just now."""

    answer: Answer
    run_id: RunId
    replayed: bool = False
    events: Sequence[Recorded[RunEvent]] = ()


@dataclass(frozen=True, kw_only=True)
class Use:
    """One request that came with a key, and what its answer is to look like."""

    tenant: str
    request: KeyedRequest
    form: Form


class Idempotency:
    """`is_live` says whether a run has its actor on this host; `now` asks the database for the time."""

    def __init__(
        self,
        settings: IdempotencySettings,
        event_log: EventLog,
        keys: Keys,
        settling: Settling,
        *,
        is_live: Callable[[RunId], bool],
        now: Callable[[], Awaitable[datetime]],
        metrics: Metrics,
    ) -> None:
        self._settings = settings
        self._log = event_log
        self._keys = keys
        self._settling = settling
        self._is_live = is_live
        self._now = now
        self._count = metrics.idempotent_requests
        self._under_way: set[asyncio.Task[Outcome]] = set()

    async def answered(self, use: Use, submission: Submission, begin: Begin) -> Outcome:
        """The answer to this request: kept from before, or of the run that it opens now.

        Raise KeyReused, KeyInProgress, or what `submission` and `begin` raise: then nothing runs that did not
        before. After StoreUnavailable a run may be under way; repeating the request tells. A caller who is
        cancelled cancels nothing: the run goes on, and its answer will be there (IDEM-6).
        """
        task = asyncio.create_task(self._answered(use, submission, begin))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_tell_of_a_crash)
            raise

    async def close(self) -> None:
        """Leave what is under way. The keys stay in progress, for another host to settle."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    async def _answered(self, use: Use, submission: Submission, begin: Begin) -> Outcome:
        while True:
            key = await self._present(use)
            kept = await self._kept(key)
            if completed := self._answer_in(key, use, kept):
                answer = Answer.kept_in(completed)
                return Outcome(answer=answer, run_id=completed.run_id, replayed=True)
            run_id = await self._begun(key, use, kept, await submission(), begin)
            if run_id is not None:
                self._count.labels("executed").inc()
                return await self._seen_to_its_end(use, run_id)

    async def _present(self, use: Use) -> Key:
        """The key as it is, brought up to date where this host does not know that its run is at work."""
        key = await self._keys.load(use.tenant, use.request.key)
        if key.reserved is None or key.completed is not None or self._is_live(key.reserved.run_id):
            return key
        return (await self._settling.settle(use.tenant, use.request.key)).key

    async def _kept(self, key: Key) -> KeptFor | None:
        """Only where answers grow old, and there is one, does it matter what time it is."""
        if not self._settings.retention_enabled or key.completed is None:
            return None
        return KeptFor(age_s=self._settings.retention, now=await self._now())

    def _answer_in(self, key: Key, use: Use, kept: KeptFor | None) -> IdempotencyKeyCompleted | None:
        try:
            completed = answer_to(key, use.request, kept)
        except (KeyReused, KeyInProgress) as error:
            self._count.labels("reused" if isinstance(error, KeyReused) else "in_progress").inc()
            raise
        if completed:
            self._count.labels("replayed").inc()
        return completed

    async def _begun(
        self, key: Key, use: Use, kept: KeptFor | None, submission: StartRequest, begin: Begin
    ) -> RunId | None:
        """Open the run and reserve the key in one append (IDEM-4); None where another was quicker."""
        run_id = submission.run_id or new_run_id()
        reserve = Reserve(request=use.request, run_id=run_id, form=use.form.name, kept=kept)
        reservation = change_by(key, use.tenant, use.request.key, reserve)
        if reservation is None:
            return None
        alongside = (*submission.alongside, reservation)
        try:
            return await begin(msgspec.structs.replace(submission, run_id=run_id, alongside=alongside))
        except VersionConflict as conflict:
            if reservation.stream_id not in conflict.stream_ids:
                raise
            return None
        except TraconError:
            raise  # refused, or not known to be begun: the store knows, if anybody
        except Exception:
            await self._let_go(use, run_id)
            raise

    async def _seen_to_its_end(self, use: Use, run_id: RunId) -> Outcome:
        """A success is told once the key has it, a failure once the key is free again."""
        try:
            if not use.form.at_once:
                await self._until_end(run_id)
            settled = await self._settling.settle(use.tenant, use.request.key, of=run_id)
        except (StoreUnavailable, asyncio.CancelledError):
            raise  # the run is not over for that, and its answer will be there
        except Exception:
            await self._let_go(use, run_id)
            raise
        made = settled.made or await self._of_others(settled.key, use, run_id)
        return Outcome(answer=made.answer, run_id=made.run_id, events=made.events)

    async def _of_others(self, key: Key, use: Use, run_id: RunId) -> Made:
        """Another host was quicker, or an operator decided otherwise: then it is told all the same."""
        ours = key.reserved is not None and key.reserved.run_id == run_id
        if ours and (completed := answer_to(key, use.request)):
            return Made(answer=Answer.kept_in(completed), run_id=completed.run_id)
        return await self._settling.made(use.form, run_id)

    async def _until_end(self, run_id: RunId) -> None:
        async with aclosing(self._log.follow(run_stream(run_id), 0)) as batches:
            async for batch in batches:
                if any(isinstance(recorded.event, RunEnd) for recorded in batch):
                    return

    async def _let_go(self, use: Use, run_id: RunId) -> None:
        """A crash does not hold a key (IDEM-3)."""
        key = await self._keys.load(use.tenant, use.request.key)
        crashed = Release(reserved_by=run_id, run_id=run_id, reason="crashed")
        try:
            await self._keys.execute(key, use.tenant, use.request.key, crashed)
        except (KeyNotHeld, VersionConflict):
            return


def _tell_of_a_crash(task: asyncio.Task[Outcome]) -> None:
    """Nobody is there any more to be told."""
    error = None if task.cancelled() else task.exception()
    if error is not None and not isinstance(error, TraconError):
        log.error("idempotency.crashed", exc_info=error)
