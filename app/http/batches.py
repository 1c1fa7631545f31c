"""Batches: many runs in one submission."""

from asyncio import shield
from uuid import UUID

from aiohttp import web
from msgspec import UNSET

from app.http.bodies import NoQuery
from app.http.decoding import body_of, query_of
from app.http.job_bodies import BatchBody
from app.http.replies import reply
from app.http.services import services_of, tenant_of
from app.jobs.batches import Batch, BatchNotFound, Item
from domain.queueing import QueueSpec


async def create_batch(request: web.Request) -> web.Response:
    """It only writes jobs, so a host that drains takes it too (DRAIN-1)."""
    query_of(request, NoQuery)
    body, services = await body_of(request, BatchBody), services_of(request)
    spec, items = body.queue.spec(services.async_run), body.plain_items()
    batch = await shield(_create(request, body, items, spec))
    location = f"{services.server.prefix}/api/batches/{batch.id}"
    return reply(batch, status=202, headers={"Location": location})


async def _create(request: web.Request, body: BatchBody, items: list[Item], spec: QueueSpec) -> Batch:
    services, tenant = services_of(request), tenant_of(request)
    if body.agent is not UNSET:
        return await services.batches.create(tenant, body.agent, items, spec)
    workflow = body.workflow or ""
    prepare = await services.workflows.prepare(tenant, workflow)
    return await services.batches.create_of(tenant, workflow, items, spec, prepare)


async def get_batch(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    return reply(await services_of(request).batches.get(tenant_of(request), _batch_id(request)))


def _batch_id(request: web.Request) -> UUID:
    text = request.match_info["id"]
    try:
        return UUID(text)
    except ValueError:
        raise BatchNotFound(text) from None
