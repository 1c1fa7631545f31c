"""Waiting for the end of a run that this very request has begun."""

from collections.abc import Callable

from aiohttp import web

from app.http.in_flight import IN_FLIGHT
from app.http.openai.refusals import RunGoesOn
from app.http.problems import problem_of
from app.http.services import services_of
from app.http.watching import each_until_end
from app.store.feed import Frame
from domain.errors import Unavailable
from domain.ids import RunId


async def wait_for_end(request: web.Request, run_id: RunId, see: Callable[[Frame], object]) -> None:
    """Show everything up to the run's end. Raise RunGoesOn where nobody can wait for it here."""
    try:
        async with request.app[IN_FLIGHT].until_stop():
            await each_until_end(services_of(request).log, run_id, see)
    except Unavailable as error:
        raise RunGoesOn(run_id, problem_of(error).detail) from error
