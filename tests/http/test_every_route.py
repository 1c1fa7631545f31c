"""What holds for every route of the table, whatever it is for."""

import re
from typing import Any
from uuid import uuid4

import pytest

from app.http.route import Route
from app.http.routes import ROUTES
from tests.http.client import Answer, Client

pytestmark = pytest.mark.asyncio(loop_scope="module")

API = [route for route in ROUTES if not route.at_root]
WITH_BODY = [route for route in API if route.body is not None]
KEYED = [route for route in API if route.keyed]
JSON = {"Content-Type": "application/json", "Accept": "application/json"}


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


def path_of(route: Route) -> str:
    """Of something that is not there."""
    return "/tracon" + re.sub(r"\{\w+\}", str(uuid4()), route.path)


def assert_told(route: Route, answer: Answer, *statuses: int) -> None:
    """A refusal in the form of the route's API, that it has in its description."""
    assert answer.status in statuses, (named(route), answer.body)
    if route.speaks_openai:
        assert answer.headers["Content-Type"] == "application/json"
        assert set(answer.body) == {"error"}
    else:
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.body["status"] == answer.status
        assert answer.body["request_id"] == answer.headers["X-Request-Id"]
    assert answer.body["error"]["message"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def send(host: Client, route: Route, body: bytes = b"{}", **headers: str) -> Answer:
    return await host.request(route.method, path_of(route), data=body, headers={**JSON, **headers})


@pytest.mark.parametrize("route", WITH_BODY, ids=named)
async def test_a_body_is_json_that_can_be_read_in_one_way_or_is_refused(
    same_host: Client, route: Route
) -> None:
    """HTTP-1: whatever else is wrong may be told first."""
    for broken in (b"{", b"\xff", b"[]", b'{"a": 1, "a": 2}', b'{"not_a_field_of_any_route": 1}', b"1e999"):
        assert_told(route, await send(same_host, route, broken), 400, 404)
    other = await send(same_host, route, b"<a/>", **{"Content-Type": "text/xml"})
    assert_told(route, other, 415, 404)
    squeezed = await send(same_host, route, b"x", **{"Content-Encoding": "compress"})
    assert_told(route, squeezed, 415, 404)


@pytest.mark.parametrize("route", API, ids=named)
async def test_a_query_parameter_that_means_nothing_is_refused(same_host: Client, route: Route) -> None:
    """HTTP-1: a misspelt filter would answer something else."""
    options: dict[str, Any] = {"headers": JSON, **({"data": b"{}"} if route.body else {})}
    answer = await same_host.request(route.method, f"{path_of(route)}?no_such_parameter=1", **options)
    assert_told(route, answer, 400 if route.scope else 401)  # who has not signed it learns nothing


@pytest.mark.parametrize("route", API, ids=named)
async def test_another_method_is_told_the_right_ones(same_host: Client, route: Route) -> None:
    """HTTP-1"""
    answer = await same_host.request("PATCH", path_of(route), headers=JSON)
    assert_told(route, answer, 405)
    assert route.method in answer.headers["Allow"].split(",")


@pytest.mark.parametrize("route", [route for route in API if route.method == "GET"], ids=named)
async def test_head_answers_as_get_does_without_the_body(same_host: Client, route: Route) -> None:
    """HTTP-1"""
    path = path_of(route)
    get, head = [await same_host.request(method, path, headers=JSON) for method in ("GET", "HEAD")]
    assert (head.status, head.body) == (get.status, b"")
    assert head.headers["Content-Type"] == get.headers["Content-Type"]


@pytest.mark.parametrize("route", KEYED, ids=named)
@pytest.mark.parametrize("key", ["", '""', "k" * 256, '"k', "k\u00e9y"])
async def test_every_route_that_takes_keys_refuses_what_is_none(
    same_host: Client, route: Route, key: str
) -> None:
    """IDEM-3"""
    headers = {"Idempotency-Key": key, "Prefer": "respond-async"}
    answer = await send(same_host, route, b"{}", **headers)
    assert_told(route, answer, 400)
    assert answer.body["error"]["type"] == "idempotency_error"


@pytest.mark.parametrize("route", KEYED, ids=named)
async def test_every_route_that_takes_keys_refuses_to_keep_a_stream(same_host: Client, route: Route) -> None:
    """IDEM-3"""
    headers = {"Idempotency-Key": "k", "Prefer": "respond-async"}
    answer = await send(same_host, route, b'{"stream": true}', **headers)
    assert_told(route, answer, 400)
    assert answer.body["error"]["type"] == "idempotency_error"


async def test_nothing_of_all_this_is_on_record(same_host: Client) -> None:
    assert await same_host.host.services.log.end_position() == 0
