"""What HTTP handlers work with."""

from collections.abc import Mapping
from importlib.metadata import version

from app.assembly.approvals import approvals_of
from app.assembly.calls import Calls
from app.assembly.ground import Ground
from app.assembly.submissions import idempotency_of
from app.assembly.supervision import Core, watch_of
from app.db.pool import server_version
from app.definitions.versions import AgentVersions
from app.http.services import About, Services
from app.jobs.batches import Batches
from app.jobs.schedules import Schedules
from app.jobs.triggers import Trigger, Triggers
from app.keys.keyring import Keyring
from app.keys.last_used import LastUsed
from app.keys.store import KeyStore
from app.quotas.quotas import Quotas
from app.supervision.replays import Replays
from app.supervision.resolutions import Resolutions
from app.supervision.run_service import RunService
from app.workflows.service import WorkflowService


async def services_of(
    ground: Ground,
    calls: Calls,
    core: Core,
    quotas: Quotas,
    workflows: WorkflowService,
    triggers: Mapping[str, Trigger],
) -> Services:
    """All of it, over what sees the runs to their end."""
    settings, log, agents = ground.settings, ground.log, ground.agents
    approvals = approvals_of(ground, core.runs, core.cancels, core.duties)
    idempotency, decisions = idempotency_of(ground, core)
    keys = KeyStore(ground.pool)
    max_attempts = settings.async_run.max_attempts
    return Services(
        runs=RunService(
            agents=agents,
            bench=core.bench,
            runs=core.runs,
            roster=core.roster,
            opener=core.opener,
            approvals=approvals,
            cancels=core.cancels,
            closing=core.closing,
            drain=core.drain,
            quotas=quotas,
        ),
        workflows=workflows,
        resolutions=Resolutions(core.runs, core.continuer),
        replays=Replays(log, core.runs, core.continuer, core.opener, agents, core.drain, quotas),
        approvals=approvals,
        drain=core.drain,
        quotas=quotas,
        log=log,
        pool=ground.pool,
        schedules=Schedules(log, agents, quotas, ground.now, grace_s=settings.schedules.grace),
        batches=Batches(log, ground.pool, agents, quotas, core.opener.refuse),
        triggers=Triggers(triggers, log, ground.now, ground.metrics, quotas, max_attempts=max_attempts),
        async_run=settings.async_run,
        views=ground.views,
        circuits=calls.circuits,
        accounts=calls.accounts,
        providers=tuple(sorted(settings.providers)),
        watch=watch_of(ground, calls.http, core.duties),
        catalog=ground.definitions.catalog,
        agents=agents,
        agent_versions=AgentVersions(ground.definitions.catalog, ground.definitions.workflows, agents, log),
        metrics=ground.metrics,
        idempotency=idempotency,
        decisions=decisions,
        keys=keys,
        keyring=Keyring(keys.usable, settings.auth.cache_ttl),
        last_used=LastUsed(keys.note_use),
        idempotency_settings=settings.idempotency,
        auth=settings.auth,
        cancellation=settings.cancellation,
        rate_limit=settings.rate_limit,
        server=settings.server,
        recording=settings.recording,
        about=About(
            version=version("tracon"),
            host_id=ground.host_id,
            postgres=await server_version(ground.pool),
            profile=settings.profile,
        ),
    )
