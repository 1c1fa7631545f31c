"""The API's description of itself."""

from typing import Any

import msgspec
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator

from app.http.display import encode
from app.http.openapi import describe
from app.http.routes import ROUTES


def served(prefix: str) -> dict[str, Any]:
    """The description as it is read by a client."""
    described: dict[str, Any] = msgspec.json.decode(encode(describe(ROUTES, prefix=prefix, version="1.2.3")))
    return described


DESCRIPTION = served("/tracon")


def operation(method: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = DESCRIPTION["paths"][path][method]
    return found


def test_it_is_valid() -> None:
    """HTTP-5"""
    OpenAPIV31SpecValidator(DESCRIPTION).validate()


@pytest.mark.parametrize("prefix", ["", "/agents/v2"])
def test_it_is_valid_under_any_prefix(prefix: str) -> None:
    """HTTP-1"""
    described = served(prefix)
    OpenAPIV31SpecValidator(described).validate()
    assert f"{prefix}/api/runs" in described["paths"]
    assert "/health/ready" in described["paths"]


def test_every_route_is_in_it() -> None:
    """HTTP-5"""
    for route in ROUTES:
        assert operation(route.method.lower(), "/tracon" + route.path)["summary"] == route.summary


def test_a_submission_is_described_by_its_types() -> None:
    start = operation("post", "/tracon/api/agents/{name}/run")
    assert start["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("/StartRunBody")
    assert set(start["responses"]["200"]["content"]) == {"application/json", "text/event-stream"}
    assert "application/problem+json" in start["responses"]["503"]["content"]
    body = DESCRIPTION["components"]["schemas"]["StartRunBody"]
    assert set(body["properties"]) == {"message", "messages", "session_id", "parameters", "queue"}
    assert body["additionalProperties"] is False


def test_texts_that_a_route_can_answer_with_are_told() -> None:
    graph = operation("get", "/tracon/api/workflows/{name}/graph")["responses"]["200"]["content"]
    assert set(graph) == {"application/json", "text/vnd.mermaid"}


def test_whatever_takes_a_body_may_wait_for_it_in_vain() -> None:
    for route in ROUTES:
        told = operation(route.method.lower(), "/tracon" + route.path)["responses"]
        assert (route.body is None) or {"408", "413", "415"} <= set(told), route.path


def test_a_submission_that_nobody_waits_for_has_its_own_answer() -> None:
    """JOB-1"""
    start = operation("post", "/tracon/api/agents/{name}/run")
    later = start["responses"]["202"]["content"]["application/json"]["schema"]
    assert later["$ref"].endswith("/RunRecord")
    assert ("Prefer", "header") in [(p["name"], p["in"]) for p in start["parameters"]]


def test_queries_and_headers_are_parameters() -> None:
    parameters = operation("get", "/tracon/api/runs/{id}/events")["parameters"]
    assert [(p["name"], p["in"]) for p in parameters] == [
        ("id", "path"),
        ("Last-Event-ID", "header"),
        ("after", "query"),
        ("take", "query"),
    ]
    listing = operation("get", "/tracon/api/runs")["parameters"]
    status = next(parameter for parameter in listing if parameter["name"] == "status")
    assert "AwaitingApproval" in status["schema"]["enum"]
