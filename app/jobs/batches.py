"""Batches: runs that are submitted together, all of them or none (JOB-2)."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec
from uuid_utils.compat import uuid7

from app.db.errors import StoreUnavailable
from app.definitions.lookup import AgentLookup
from app.identity import new_run_id
from app.jobs.submission import SUBMISSION_PATIENCE_S, queued_run
from app.quotas.quotas import Asked, Quotas
from app.store.event_log import Change, EventLog
from domain.errors import NotFound, Rejected
from domain.events import BatchCreated
from domain.ids import RunId, Version, batch_stream
from domain.messages import Message
from domain.parameters import BadParameter, instantiate
from domain.queueing import BatchItem, QueueSpec
from domain.run import RunStatus
from projections.job_record import JobRecord
from projections.read.jobs import jobs_of_batch


class BatchNotFound(NotFound):
    """No batch of this tenant has this id."""

    code = "batch_not_found"

    def __init__(self, batch_id: object) -> None:
        super().__init__(f"there is no batch {batch_id}")


class BadItem(Rejected):
    """One item cannot be run as it is. Nothing of the batch was begun; correct the item."""

    code = "bad_item"

    def __init__(self, number: int, error: BadParameter) -> None:
        super().__init__(f"item {number}: {error}")
        self.field = f"items[{number}].{error.field}"


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a batch is asked."""

    messages: tuple[Message, ...]
    parameters: dict[str, Any] = {}
    session_id: str | None = None


Prepare = Callable[[RunId, Item, QueueSpec], Change]
"""Makes what the log is to hold of one queued run. Raises BadParameter for an item that cannot be run."""


class ItemState(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a batch, and how far it is."""

    number: int
    run_id: RunId
    status: RunStatus = RunStatus.QUEUED
    error: str | None = None


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """The batch JSON."""

    id: UUID
    agent: str
    created_at: datetime
    counts: dict[RunStatus, int]
    """How many items there are of each status that occurs."""
    items: tuple[ItemState, ...]


class Batches:
    """Every method raises StoreUnavailable."""

    def __init__(
        self,
        log: EventLog,
        pool: asyncpg.Pool,
        agents: AgentLookup,
        quotas: Quotas,
        refuse: Callable[[RunId], None],
    ) -> None:
        """`refuse` is told of a run that may have been recorded although its submission was refused."""
        self._log = log
        self._pool = pool
        self._agents = agents
        self._quotas = quotas
        self._refuse = refuse

    async def create(self, tenant: str, agent: str, items: Sequence[Item], queue: QueueSpec) -> Batch:
        """Queue a run for each item, in one append, or for none. Raise AgentNotFound, BadItem or
        QuotaExceeded.
        """
        definition = await self._agents.agent(tenant, agent)

        def prepare(run_id: RunId, item: Item, queue: QueueSpec) -> Change:
            instantiate(definition, item.parameters)
            return queued_run(
                run_id,
                tenant,
                agent,
                item.messages,
                queue,
                parameters=item.parameters,
                session_id=item.session_id,
            )

        return await self.create_of(tenant, agent, items, queue, prepare)

    async def create_of(
        self, tenant: str, agent: str, items: Sequence[Item], queue: QueueSpec, prepare: Prepare
    ) -> Batch:
        """The same for runs of any kind. Raise BadItem or QuotaExceeded."""
        batch_id, runs = UUID(str(uuid7())), tuple(new_run_id() for _ in items)
        own = Change(
            stream_id=batch_stream(batch_id),
            expected=Version(0),
            tenant=tenant,
            events=(BatchCreated(agent=agent, runs=runs),),
        )
        changes = []
        for number, (run_id, item) in enumerate(zip(runs, items, strict=True)):
            spec = msgspec.structs.replace(queue, source=BatchItem(batch_id=batch_id, number=number))
            try:
                changes.append(prepare(run_id, item, spec))
            except BadParameter as error:
                raise BadItem(number, error) from error
        async with self._quotas.admitted(tenant, *(Asked(run_id, agent) for run_id in runs)):
            try:
                [created, *_] = await self._log.append(own, *changes, patience_s=SUBMISSION_PATIENCE_S)
            except StoreUnavailable:
                for run_id in runs:
                    self._refuse(run_id)
                raise
        states = tuple(ItemState(number=number, run_id=run_id) for number, run_id in enumerate(runs))
        return _batch(batch_id, agent, created.at, states)

    async def get(self, tenant: str, batch_id: UUID) -> Batch:
        """Its items as the `jobs` view has them, maybe some milliseconds behind. Raise BatchNotFound."""
        recorded = await self._log.read_stream(batch_stream(batch_id), limit=1)
        created = recorded[0].event if recorded and recorded[0].tenant == tenant else None
        if not isinstance(created, BatchCreated):
            raise BatchNotFound(batch_id)
        latest = _latest(await jobs_of_batch(self._pool, batch_id))
        states = tuple(
            ItemState(number=number, run_id=job.id, status=job.status, error=job.error)
            if (job := latest.get(number))
            else ItemState(number=number, run_id=run_id)
            for number, run_id in enumerate(created.runs)
        )
        return _batch(batch_id, created.agent, recorded[0].at, states)


def _latest(jobs: Mapping[RunId, JobRecord]) -> dict[int, JobRecord]:
    """Each item's last run: one that was interrupted may have been gone on from (WF-4)."""
    latest: dict[int, JobRecord] = {}
    for job in sorted(jobs.values(), key=lambda job: job.queued_at):
        if isinstance(job.source, BatchItem):
            latest[job.source.number] = job
    return latest


def _batch(batch_id: UUID, agent: str, created_at: datetime, items: tuple[ItemState, ...]) -> Batch:
    counts = Counter(item.status for item in items)
    return Batch(id=batch_id, agent=agent, created_at=created_at, counts=dict(counts), items=items)
