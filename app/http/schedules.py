"""Schedules: runs that are wanted at certain times."""

from asyncio import shield

from aiohttp import web

from app.http.bodies import ListQuery, NoQuery
from app.http.decoding import body_of, query_of
from app.http.job_bodies import CreateScheduleBody, ReplaceScheduleBody
from app.http.queued import queued_before
from app.http.replies import reply
from app.http.services import services_of, tenant_of
from app.jobs.schedules import Schedules
from projections.read.schedules import list_schedules as read_schedules


async def list_schedules(request: web.Request) -> web.Response:
    wanted, services = query_of(request, ListQuery), services_of(request)
    return reply(await read_schedules(services.pool, tenant_of(request), skip=wanted.skip, take=wanted.take))


async def create_schedule(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    body, services = await body_of(request, CreateScheduleBody), services_of(request)
    definition = body.definition(body.name, services.async_run)
    record = await services.schedules.define(tenant_of(request), definition, replace=False)
    location = f"{services.server.prefix}/api/schedules/{body.name}"
    return reply(record, status=201, headers={"Location": location})


async def replace_schedule(request: web.Request) -> web.Response:
    """Only one that is there: a name is chosen once, when it is created."""
    schedules, tenant, name = _named(request)
    await schedules.get(tenant, name)
    body = await body_of(request, ReplaceScheduleBody)
    definition = body.definition(name, services_of(request).async_run)
    return reply(await schedules.define(tenant, definition, replace=True))


async def get_schedule(request: web.Request) -> web.Response:
    schedules, tenant, name = _named(request)
    return reply(await schedules.get(tenant, name))


async def remove_schedule(request: web.Request) -> web.Response:
    schedules, tenant, name = _named(request)
    record = await schedules.get(tenant, name)
    await schedules.remove(tenant, name)
    return reply(record)


async def pause_schedule(request: web.Request) -> web.Response:
    schedules, tenant, name = _named(request)
    return reply(await schedules.pause(tenant, name))


async def resume_schedule(request: web.Request) -> web.Response:
    schedules, tenant, name = _named(request)
    return reply(await schedules.resume(tenant, name))


async def trigger_schedule(request: web.Request) -> web.Response:
    """It only writes a job, so a host that drains takes it too (DRAIN-1)."""
    schedules, tenant, name = _named(request)
    run_id = await shield(schedules.trigger(tenant, name))
    return await queued_before(request, run_id)


def _named(request: web.Request) -> tuple[Schedules, str, str]:
    query_of(request, NoQuery)
    return services_of(request).schedules, tenant_of(request), request.match_info["name"]
