"""Everything that handlers work with, in one typed container that the composition root fills."""

from dataclasses import dataclass
from datetime import UTC, datetime
from platform import python_version
from typing import Annotated

import asyncpg
import msgspec
from aiohttp import web
from msgspec import Meta

from app.definitions.lookup import AgentLookup
from app.definitions.versions import AgentVersions
from app.http.request_keys import PRINCIPAL
from app.http.sse import OpenStreams
from app.idempotency.decisions import Decisions
from app.idempotency.service import Idempotency
from app.jobs.batches import Batches
from app.jobs.schedules import Schedules
from app.jobs.triggers import Triggers
from app.keys.keyring import Keyring
from app.keys.last_used import LastUsed
from app.keys.store import KeyStore
from app.metrics import Metrics
from app.models.accounts import Accounts
from app.models.circuits import Circuits
from app.quotas.quotas import Quotas
from app.registry import Catalog
from app.settings import (
    AsyncRunSettings,
    AuthSettings,
    CancellationSettings,
    IdempotencySettings,
    RateLimitSettings,
    RecordingSettings,
    ServerSettings,
)
from app.store.event_log import EventLog
from app.supervision.approvals import Approvals
from app.supervision.drain import Drain
from app.supervision.provider_watch import ProviderWatch
from app.supervision.replays import Replays
from app.supervision.resolutions import Resolutions
from app.supervision.run_service import RunService
from app.workflows.service import WorkflowService
from projections.views import Views


class About(msgspec.Struct, frozen=True, kw_only=True):
    """What this host is. Nothing in here is a secret: /api/meta shows it."""

    version: str
    host_id: str
    postgres: str
    profile: str
    """What the settings started from."""
    python: str = msgspec.field(default_factory=python_version)
    started_at: Annotated[datetime, Meta(tz=True)] = msgspec.field(default_factory=lambda: datetime.now(UTC))


@dataclass(frozen=True, kw_only=True)
class Services:
    """Shared by all requests."""

    runs: RunService
    workflows: WorkflowService
    resolutions: Resolutions
    replays: Replays
    approvals: Approvals
    drain: Drain
    quotas: Quotas
    log: EventLog
    pool: asyncpg.Pool
    """For reading views."""
    views: Views
    catalog: Catalog
    agents: AgentLookup
    agent_versions: AgentVersions
    schedules: Schedules
    batches: Batches
    triggers: Triggers
    async_run: AsyncRunSettings
    circuits: Circuits
    accounts: Accounts
    providers: tuple[str, ...]
    """Names of all that are configured, in order."""
    watch: ProviderWatch | None
    """None where nobody looks at providers."""
    metrics: Metrics
    idempotency: Idempotency
    decisions: Decisions
    """What operators decide of idempotency keys."""
    keys: KeyStore
    keyring: Keyring
    last_used: LastUsed
    idempotency_settings: IdempotencySettings
    auth: AuthSettings
    cancellation: CancellationSettings
    rate_limit: RateLimitSettings
    server: ServerSettings
    recording: RecordingSettings
    about: About


SERVICES = web.AppKey("services", Services)
STREAMS = web.AppKey("streams", OpenStreams)
DESCRIPTION = web.AppKey("description", bytes)
"""The API's own description, encoded."""


def services_of(request: web.Request) -> Services:
    return request.app[SERVICES]


def tenant_of(request: web.Request) -> str:
    """Whose things this request may see: its key's tenant. Routes that are open to everybody have none."""
    return request[PRINCIPAL].tenant


def key_of(request: web.Request) -> str | None:
    """The id of the API key that is used; None for a client on this machine without one."""
    key_id = request[PRINCIPAL].key_id
    return None if key_id is None else str(key_id)
