"""The API's description (OpenAPI 3.1), made from the rows that make the router and the types' schemas."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

import msgspec

from app.http.bodies import EventsQuery
from app.http.display import FrameView
from app.http.negotiation import EVENT_STREAM, JSON
from app.http.openai.error_object import ApiErrorBody
from app.http.problems import MEDIA_TYPE as PROBLEM
from app.http.problems import Problem
from app.http.route import Route

Schema = dict[str, Any]

_ABOUT = (
    "Runs LLM agents reliably. Errors are RFC 9457 problems, and OpenAI's error objects under /v1; `code` is "
    "stable and for machines."
)
_ALWAYS = (400, 500)
_OF_BODIES = (408, 413, 415)
_GUARDED = (401, 403, 429, 503)
"""Also of every route that wants a key."""
_STREAM = (
    "Server-sent events. `id` is the event's sequence, `event` its type, `data` a FrameView. Comments keep "
    "an idle stream open. It ends after the event that ends the run. A late failure is a frame `error` "
    "without an id; its data is a Problem. Last-Event-ID resumes on any host, without gap or repeat."
)
_KEY = {
    "type": "http",
    "scheme": "bearer",
    "description": "An API key. Without auth.required, clients on the same machine may do without one.",
}
_IDEMPOTENCY_KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": (
        "Unique to one operation. The request then runs once, and whoever repeats it with the same body gets "
        "the first answer again, with `Idempotency-Replayed: true`. The answer is one body, never a stream."
    ),
    "schema": {"type": "string", "minLength": 1},
}
_PREFER = {
    "name": "Prefer",
    "in": "header",
    "description": "`respond-async` leaves the run to a worker. The answer is then 202, with a Location.",
    "schema": {"type": "string"},
}
_LAST_EVENT_ID = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The sequence of the last frame that the client has. It wins over `after`.",
    "schema": {"type": "integer", "minimum": 0},
}


_IF_MATCH: Schema = {
    "name": "If-Match",
    "in": "header",
    "schema": {"type": "string"},
    "description": "The ETag of the version that is to be changed, or `*` for any that is there; else 412.",
}
_IF_NONE_MATCH: Schema = {
    "name": "If-None-Match",
    "in": "header",
    "schema": {"type": "string", "enum": ["*"]},
    "description": "`*`: only if there is none yet; else 412.",
}


def describe(routes: Sequence[Route], *, prefix: str, version: str) -> Schema:
    """The whole document. Paths that also answer at the root are listed there too."""
    schemas = _Schemas(routes)
    paths: dict[str, Schema] = {}
    for route in routes:
        for start in dict.fromkeys((prefix, "") if route.at_root else (prefix,)):
            paths.setdefault(start + route.path, {})[route.method.lower()] = _operation(
                route, start == prefix, schemas
            )
    return {
        "openapi": "3.1.0",
        "info": {"title": "Tracon", "version": version, "description": _ABOUT},
        "paths": paths,
        "components": {"schemas": schemas.components, "securitySchemes": {"key": _KEY}},
    }


class _Schemas:
    """The schemas of every type that a route mentions."""

    def __init__(self, routes: Sequence[Route]) -> None:
        answers = [route.answer for route in routes if isinstance(route.answer, type)]
        answers += [type_ for route in routes for type_ in (route.later, route.accepted) if type_ is not None]
        bodies = [route.body for route in routes if route.body is not None]
        types = dict.fromkeys([*answers, *bodies, Problem, ApiErrorBody, FrameView])
        references, self.components = msgspec.json.schema_components(
            types, ref_template="#/components/schemas/{name}"
        )
        for type_ in bodies:
            self.components[type_.__name__] |= getattr(type_, "also", {})
        self._references = dict(zip(types, references, strict=True))

    def of(self, type_: type) -> Schema:
        return self._references[type_]


def _operation(route: Route, canonical: bool, schemas: _Schemas) -> Schema:
    operation: Schema = {
        "operationId": route.handler.__name__ + ("" if canonical else "_at_root"),
        "summary": route.summary,
        "parameters": _parameters(route),
        "responses": _responses(route, schemas),
    }
    if route.scope is not None:
        operation["security"] = [{}, {"key": [route.scope.value]}]
    if route.body is not None:
        operation["requestBody"] = {
            "required": route.body_required,
            "content": {JSON: {"schema": schemas.of(route.body)}},
        }
    return operation


def _parameters(route: Route) -> list[Schema]:
    in_path = [
        {"name": part[1:-1], "in": "path", "required": True, "schema": {"type": "string"}}
        for part in route.path.split("/")
        if part.startswith("{")
    ]
    resumes = [_LAST_EVENT_ID] if route.query is EventsQuery else []
    prefers = [_PREFER] if route.later is not None else []
    once = [_IDEMPOTENCY_KEY] if route.keyed else []
    conditions = [_IF_MATCH, _IF_NONE_MATCH] if route.conditional else []
    return [*in_path, *resumes, *prefers, *once, *conditions, *_query_parameters(route.query)]


def _query_parameters(query: type) -> list[Schema]:
    _, components = msgspec.json.schema_components([query], ref_template="{name}")
    properties: Mapping[str, Schema] = components[query.__name__]["properties"]
    return [
        {"name": name, "in": "query", "schema": _inlined(schema, components)}
        for name, schema in properties.items()
    ]


def _inlined(schema: Schema, components: Mapping[str, Schema]) -> Schema:
    """A parameter is text or not there, never null; and what it refers to is written out."""
    options = [option for option in schema.get("anyOf", [schema]) if option != {"type": "null"}]
    chosen = dict(options[0])
    if reference := chosen.pop("$ref", None):
        chosen = {**components[reference]}
    return chosen


def _responses(route: Route, schemas: _Schemas) -> Schema:
    if route.speaks_openai:
        error = {JSON: {"schema": schemas.of(ApiErrorBody)}}
    else:
        error = {PROBLEM: {"schema": schemas.of(Problem)}}
    guarded = _GUARDED if route.scope else ()
    of_body = _OF_BODIES if route.body else ()
    told = {
        str(status): {"description": HTTPStatus(status).phrase, "content": error}
        for status in sorted({*_ALWAYS, *guarded, *of_body, *route.errors})
    }
    answers = {str(route.status): {"description": _description(route), "content": _content(route, schemas)}}
    if route.creates:
        answers["201"] = {**answers[str(route.status)], "description": HTTPStatus.CREATED.phrase}
    if later := route.later or route.accepted:
        answers["202"] = {
            "description": HTTPStatus.ACCEPTED.phrase,
            "content": {JSON: {"schema": schemas.of(later)}},
        }
    return {**answers, **told}


def _description(route: Route) -> str:
    return (route.about_stream or _STREAM) if route.streams else HTTPStatus(route.status).phrase


def _content(route: Route, schemas: _Schemas) -> Schema:
    content: Schema = {media: {"schema": {"type": "string"}} for media in route.texts}
    if isinstance(route.answer, str):
        return {**content, route.answer: {"schema": {"type": "object" if route.answer == JSON else "string"}}}
    content[JSON] = {"schema": schemas.of(route.answer)}
    if route.streams:
        content[EVENT_STREAM] = {}  # OpenAPI 3.1 has no words for its items; the description has
    return content
