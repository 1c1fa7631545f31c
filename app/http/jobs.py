"""Jobs: queued runs, and who works on them."""

import msgspec
from aiohttp import web

from app.http.bodies import NoQuery
from app.http.decoding import query_of, run_id_of
from app.http.events import name_run
from app.http.job_bodies import JobsQuery
from app.http.replies import reply
from app.http.services import services_of, tenant_of
from domain.errors import NotFound
from domain.ids import RunId
from projections.job_record import job_of
from projections.read.jobs import Job, lease_of
from projections.read.jobs import list_jobs as read_jobs


class JobNotFound(NotFound):
    """No job of this tenant has this id. A run that was begun at once is none."""

    code = "job_not_found"

    def __init__(self, run_id: RunId) -> None:
        super().__init__(f"there is no job {run_id}")


async def list_jobs(request: web.Request) -> web.Response:
    wanted, services = query_of(request, JobsQuery), services_of(request)
    page = await read_jobs(
        services.pool, tenant_of(request), wanted.filter, skip=wanted.skip, take=wanted.take
    )
    return reply(page)


async def get_job(request: web.Request) -> web.Response:
    """Folded from the run's own stream, so that it is never behind; the lease is as it is now."""
    query_of(request, NoQuery)
    run_id, services = name_run(request, run_id_of(request)), services_of(request)
    record = job_of(await services.runs.load(tenant_of(request), run_id))
    if record is None:
        raise JobNotFound(run_id)
    lease = None if record.ended_at else await lease_of(services.pool, run_id)
    return reply(Job(**msgspec.structs.asdict(record), lease=lease))
