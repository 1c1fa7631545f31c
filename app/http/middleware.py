"""What happens around every handler: a request id, a count, problems for errors, and who is served at all."""

import logging
import re
from collections.abc import Mapping
from ipaddress import ip_address
from time import perf_counter
from uuid import uuid4

from aiohttp import ClientConnectionResetError, web
from aiohttp.typedefs import Handler

from app import logs
from app.http.errors import NotServed
from app.http.problems import is_crash, problem_of, response_of
from app.http.request_keys import REQUEST_ID, RUN_ID, STREAMING
from app.http.services import services_of

log = logging.getLogger(__name__)

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_FORWARDED = ("Forwarded", "X-Forwarded-For", "X-Real-IP")
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
        response = response_of(problem_of(error), request)
        if isinstance(error, web.HTTPMethodNotAllowed):
            response.headers["Allow"] = ",".join(sorted(error.allowed_methods))
        if request.body_exists and not request.content.at_eof():
            response.force_close()  # what is left of the body is not worth reading
        return response


@web.middleware
async def serve_local(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Without credentials only this machine is served (HTTP-4)."""
    if not is_local(request.remote, request.headers):
        raise NotServed("Without credentials only clients on the service's own machine are served.")
    return await handler(request)


async def stamp(request: web.Request, response: web.StreamResponse) -> None:
    """Headers that every answer has, streams too."""
    response.headers["X-Request-Id"] = request.get(REQUEST_ID) or uuid4().hex
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers["Server"] = "tracon"
    if run_id := request.get(RUN_ID):
        response.headers["X-Run-Id"] = run_id


def is_local(peer: str | None, headers: Mapping[str, str]) -> bool:
    """Whether the client is on this machine: by its address, by what it calls us, and through no proxy.

    A proxy on this machine speaks for others, and a web page elsewhere can make a browser here call this
    address under the page's own name: both come from a loopback address.
    """
    if any(name in headers for name in _FORWARDED):
        return False
    return is_loopback(peer or "") and is_loopback(_host_name(headers.get("Host", "")))


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


def is_loopback(name: str) -> bool:
    """An empty name is that of a Unix socket's client, or of one that does not say whom it calls."""
    if not name or name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ip_address(name.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback


def _request_id(given: str | None) -> str:
    """The client's own, if it is one that a log can hold."""
    return given if given and _REQUEST_ID.fullmatch(given) else uuid4().hex


def _count(request: web.Request, status: int, seconds: float) -> None:
    metrics = services_of(request).metrics
    resource = request.match_info.route.resource
    route = resource.canonical if resource else "unmatched"
    method = request.method if request.method in _METHODS else "OTHER"
    metrics.http_requests.labels(method, route, str(status)).inc()
    if not request.get(STREAMING):
        metrics.http_request_seconds.labels(method, route).observe(seconds)
    log.debug("request.answered", extra={"method": method, "route": route, "status": status})
