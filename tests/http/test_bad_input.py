"""Everything wrong with a request is a problem that says what, and never a crash."""

from typing import Any
from uuid import UUID

import pytest

from tests.http.client import JSON, STREAM, Client

pytestmark = pytest.mark.asyncio(loop_scope="module")

RUN = "/tracon/api/agents/echo/run"
NOBODY = f"/tracon/api/runs/{UUID(int=7)}"
TYPED = {"Content-Type": "application/json", **JSON}


def sent(raw: bytes, **headers: str) -> dict[str, Any]:
    return {"data": raw, "headers": {**TYPED, **headers}}


CASES: list[tuple[str, str, dict[str, Any], int, str, str | None]] = [
    ("POST", RUN, sent(b'{"message": "hi"'), 400, "bad_body", None),
    ("POST", RUN, sent(b"hi"), 400, "bad_body", None),
    ("POST", RUN, sent(b""), 400, "bad_body", None),
    ("POST", RUN, sent(b'{"message": "\xff"}'), 400, "bad_body", None),
    ("POST", RUN, sent(b"{}"), 400, "bad_body", "$.message"),
    (
        "POST",
        RUN,
        sent(b'{"message": "a", "messages": [{"role": "user", "content": "b"}]}'),
        400,
        "bad_body",
        "$.message",
    ),
    ("POST", RUN, sent(b'{"message": 7}'), 400, "bad_body", "$.message"),
    ("POST", RUN, sent(b'{"message": null}'), 400, "bad_body", "$.message"),
    ("POST", RUN, sent(b'{"message": ""}'), 400, "bad_body", "$.message"),
    ("POST", RUN, sent(b'{"message": " \\n "}'), 400, "bad_body", "$.message"),
    ("POST", RUN, sent(b'{"messages": []}'), 400, "bad_body", "$.messages"),
    (
        "POST",
        RUN,
        sent(b'{"messages": [{"role": "assistant", "content": "a"}]}'),
        400,
        "bad_body",
        "$.messages",
    ),
    ("POST", RUN, sent(b'{"messages": [{"role": "user", "content": ""}]}'), 400, "bad_body", "$.messages"),
    ("POST", RUN, sent(b'{"message": "a", "mesage": "b"}'), 400, "bad_body", "$.mesage"),
    ("POST", RUN, sent(b'{"message": "a", "stream": true}'), 400, "bad_body", "$.stream"),
    ("POST", RUN, sent(b'{"message": "a", "message": "b"}'), 400, "bad_body", "message"),
    ("POST", RUN, sent(b'{"message": "a", "session_id": ""}'), 400, "bad_body", "$.session_id"),
    ("POST", RUN, sent(b'{"message": "a", "session_id": "a\\u0000b"}'), 400, "bad_body", "$.session_id"),
    ("POST", RUN, sent(b'{"message": "a", "session_id": "a\\n"}'), 400, "bad_body", "$.session_id"),
    (
        "POST",
        RUN,
        sent(b'{"message": "a", "parameters": {"tone": 1}}'),
        400,
        "bad_parameter",
        "$.parameters.tone",
    ),
    (
        "POST",
        RUN,
        sent(b'{"message": "a", "parameters": {"x": 1e999}}'),
        400,
        "bad_body",
        "$.parameters[...]",
    ),
    (
        "POST",
        RUN,
        sent(b'{"message": "a", "parameters": %b}' % (b"[" * 10**5)),
        400,
        "bad_body",
        "$.parameters",
    ),
    (
        "POST",
        RUN,
        sent(b'{"message": "a"}', **{"Content-Type": "text/plain"}),
        415,
        "unsupported_media_type",
        None,
    ),
    ("POST", RUN, sent(b"not gzip", **{"Content-Encoding": "gzip"}), 400, "bad_body", None),
    ("POST", RUN, {"data": b"message=a", "headers": JSON}, 415, "unsupported_media_type", None),
    ("POST", RUN, sent(b'{"message": "a"}', Accept="text/html"), 406, "not_acceptable", None),
    ("POST", f"{RUN}?stream=true", sent(b'{"message": "a"}'), 400, "bad_query", "stream"),
    ("POST", "/tracon/api/agents/nobody/run", sent(b'{"message": "a"}'), 404, "agent_not_found", None),
    ("POST", "/tracon/api/agents/%00/run", sent(b'{"message": "a"}'), 404, "agent_not_found", None),
    ("GET", "/tracon/api/agents/nobody", {}, 404, "agent_not_found", None),
    ("GET", NOBODY, {}, 404, "run_not_found", None),
    ("GET", f"{NOBODY}/events", {"headers": STREAM}, 404, "run_not_found", None),
    ("GET", f"{NOBODY}/events", {"headers": JSON}, 404, "run_not_found", None),
    ("GET", f"{NOBODY}/input", {}, 404, "run_not_found", None),
    ("GET", f"{NOBODY}/tools", {}, 404, "run_not_found", None),
    ("POST", f"{NOBODY}/cancel", {}, 404, "run_not_found", None),
    ("GET", "/tracon/api/runs/7", {}, 404, "run_not_found", None),
    ("POST", f"{NOBODY}/cancel", sent(b'{"why": "x"}'), 400, "bad_body", "$.why"),
    ("POST", f"{NOBODY}/cancel", {"data": b"why"}, 415, "unsupported_media_type", None),
    ("GET", "/tracon/api/runs?status=Broken", {}, 400, "bad_query", "status"),
    ("GET", "/tracon/api/runs?take=x", {}, 400, "bad_query", "take"),
    ("GET", "/tracon/api/runs?stauts=Failed", {}, 400, "bad_query", "stauts"),
    ("GET", "/tracon/api/runs?since=0001-01-01T00:00:00%2B23:59", {}, 400, "bad_query", "since"),
    ("GET", "/tracon/api/runs?until=9999-12-31T23:59:59-23:59", {}, 400, "bad_query", "until"),
    ("GET", "/tracon/api/stats?since=today", {}, 400, "bad_query", "since"),
    ("GET", "/tracon/api/nothing", {}, 404, "no_such_route", None),
    ("GET", "/elsewhere", {}, 404, "no_such_route", None),
    ("GET", RUN, {}, 405, "method_not_allowed", None),
    ("DELETE", NOBODY, {}, 405, "method_not_allowed", None),
    ("GET", "/tracon/api/meta", {"headers": {"X-Forwarded-For": "10.0.0.7"}}, 401, "unauthenticated", None),
    ("GET", "/tracon/api/meta", {"headers": {"Host": "evil.example"}}, 401, "unauthenticated", None),
]


@pytest.mark.parametrize(("method", "path", "options", "status", "code", "field"), CASES)
async def test_a_wrong_request_is_told_what_is_wrong(
    same_host: Client,
    method: str,
    path: str,
    options: dict[str, Any],
    status: int,
    code: str,
    field: str | None,
) -> None:
    """HTTP-1, HTTP-2, HTTP-4"""
    answer = await same_host.request(method, path, **options)
    assert (answer.status, answer.body["code"]) == (status, code), answer.body
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    assert [error["field"] for error in answer.body.get("errors", [])] == ([field] if field else [])
    assert answer.body["status"] == status
    assert answer.body["type"] == f"urn:tracon:problem:{code}"
    assert answer.body["title"]
    assert answer.body["detail"].strip()
    assert answer.body["instance"] == path.partition("?")[0].replace("%00", "\0")
    assert answer.body["request_id"] == answer.headers["X-Request-Id"]
    if field:
        assert field.rpartition(".")[2] in answer.body["detail"]


async def test_a_wrong_method_is_told_the_right_ones(same_host: Client) -> None:
    """HTTP-1"""
    assert (await same_host.request("GET", RUN)).headers["Allow"] == "POST"
    assert (await same_host.request("DELETE", "/tracon/api/runs")).headers["Allow"] == "GET,HEAD"


async def test_nothing_runs_for_a_wrong_request(same_host: Client) -> None:
    """HTTP-1"""
    for method, path, options, *_ in CASES:
        await same_host.request(method, path, **options)
    assert await same_host.host.services.log.end_position() == 0
