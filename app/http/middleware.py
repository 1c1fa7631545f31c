"""What happens around every handler: a request id, a count, and problems for errors."""

import logging
import re
from time import perf_counter
from uuid import uuid4

from aiohttp import ClientConnectionResetError, web
from aiohttp.typedefs import Handler

from app import logs
from app.http.errors import Refused
from app.http.openai.failures import failure_of_request
from app.http.problems import is_crash, problem_of, response_of
from app.http.request_keys import REQUEST_ID, RUN_ID, STREAMING
from app.http.route import OPENAI
from app.http.services import services_of

log = logging.getLogger(__name__)

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
CLIENT_GONE = 499
"""What is counted when a client hangs up before its answer."""


@web.middleware
async def observe(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Outermost: the request's id on every log line and in the answer, one count and one line per request."""
    request_id = request[REQUEST_ID] = _request_id(request.headers.get("X-Request-Id"))
    began, status = perf_counter(), CLIENT_GONE
    with logs.about(request_id=request_id):
        try:
            response = await handler(request)
            status = response.status
            return response
        finally:
            _count(request, status, perf_counter() - began)


@web.middleware
async def tell_problems(request: web.Request, handler: Handler) -> web.StreamResponse:
    """The one place where errors become answers. A crash is logged here and tells the client nothing."""
    try:
        return await handler(request)
    except ClientConnectionResetError:
        return web.Response(status=CLIENT_GONE)  # to nobody
    except Exception as error:
        if is_crash(error):
            log.exception("request.crashed")
        told = problem_of(error)
        if speaks_openai(request):
            response = failure_of_request(told).render().response()
        else:
            response = response_of(told, request)
        if isinstance(error, Refused):
            response.headers.update(error.headers)
        if isinstance(error, web.HTTPMethodNotAllowed):
            response.headers["Allow"] = ",".join(sorted(error.allowed_methods))
        if request.body_exists and not request.content.at_eof():
            response.force_close()  # what is left of the body is not worth reading
        return response


async def stamp(request: web.Request, response: web.StreamResponse) -> None:
    """Headers that every answer has, streams too."""
    response.headers["X-Request-Id"] = request.get(REQUEST_ID) or uuid4().hex
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Server"] = "tracon"
    if run_id := request.get(RUN_ID):
        response.headers["X-Run-Id"] = run_id
    if services_of(request).drain.begun.is_set():
        response.headers["Connection"] = "close"  # the client's next request belongs to another host
        response.force_close()


def _request_id(given: str | None) -> str:
    """The client's own, if it is one that a log can hold."""
    return given if given and _REQUEST_ID.fullmatch(given) else uuid4().hex


def speaks_openai(request: web.Request) -> bool:
    """Whether the path is one of the API that is OpenAI's (HTTP-1)."""
    return request.path.startswith(services_of(request).server.prefix + OPENAI)


def _count(request: web.Request, status: int, seconds: float) -> None:
    metrics = services_of(request).metrics
    resource = request.match_info.route.resource
    route = resource.canonical if resource else "unmatched"
    method = request.method if request.method in _METHODS else "OTHER"
    metrics.http_requests.labels(method, route, str(status)).inc()
    if not request.get(STREAMING):
        metrics.http_request_seconds.labels(method, route).observe(seconds)
    log.debug("request.answered", extra={"method": method, "route": route, "status": status})
