"""One row of the API, from which the router and the description of the API are both made."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial

from aiohttp import web

from app.http.bodies import NoQuery
from app.keys.key import Scope

HandlerOf = Callable[[web.Request], Awaitable[web.StreamResponse]]

OPENAI = "/v1/"
"""What the paths of the API that is OpenAI's start with, behind the prefix."""


@dataclass(frozen=True)
class Route:
    method: str
    path: str
    handler: HandlerOf
    summary: str
    answer: type | str
    """The type of the JSON answer, or the media type of an answer that is not JSON."""
    _: KW_ONLY
    scope: Scope | None
    """What a key must be for; None opens the route to everybody."""
    status: int = 200
    body: type | None = None
    body_required: bool = True
    query: type = NoQuery
    errors: tuple[int, ...] = ()
    """Statuses of the problems that it may answer, besides those that any route may."""
    keyed: bool = False
    """Whether it takes an Idempotency-Key (IDEM-1)."""
    later: type | None = None
    """The type of its 202, for clients that prefer not to wait."""
    accepted: type | None = None
    """The type of its 202, where what was asked for takes longer than it waits."""
    texts: tuple[str, ...] = ()
    """Media types of texts that it can also answer with."""
    streams: bool = False
    """Whether it can also answer as an event stream."""
    about_stream: str = ""
    """What such a stream is like, where it is not one of a run's events."""
    conditional: bool = False
    """Whether it heeds If-Match and If-None-Match."""
    creates: bool = False
    """Whether it answers 201 where there was nothing before."""
    at_root: bool = False
    """Whether it answers without the prefix too, where scrapers and probes expect it."""

    @property
    def speaks_openai(self) -> bool:
        """Whether its errors are OpenAI's objects and not problems (HTTP-1)."""
        return self.path.startswith(OPENAI)


get = partial(Route, "GET")
post = partial(Route, "POST")
put = partial(Route, "PUT")
delete = partial(Route, "DELETE")

_TABLE = web.AppKey("routes", dict[tuple[str, str], Route])


def add_routes(application: web.Application, routes: Sequence[Route], prefix: str) -> None:
    """Each under the prefix; those that say so at the root as well. HEAD comes with GET."""
    table = application[_TABLE] = {}
    for route in routes:
        for start in dict.fromkeys((prefix, "") if route.at_root else (prefix,)):
            table[route.method, start + route.path] = route
            if route.method == "GET":
                application.router.add_get(start + route.path, route.handler)
            else:
                application.router.add_route(route.method, start + route.path, route.handler)


def route_of(request: web.Request) -> Route | None:
    """The row that the request has come to; None where it leads nowhere."""
    resource = request.match_info.route.resource
    if resource is None:
        return None
    method = "GET" if request.method == "HEAD" else request.method
    return request.app[_TABLE].get((method, resource.canonical))
