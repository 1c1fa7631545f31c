"""Agents as OpenAI's API lists models."""

from typing import Literal

import msgspec
from aiohttp import web

from app.http.agents import agents_of
from app.http.bodies import NoQuery
from app.http.decoding import query_of
from app.http.replies import reply
from app.http.services import services_of, tenant_of


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """An agent. `created` is when this host started: agents have no date of their own."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: Literal["tracon"] = "tracon"


class ModelList(msgspec.Struct, frozen=True, kw_only=True):
    object: Literal["list"] = "list"
    data: tuple[Model, ...]


async def list_models(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    return reply(ModelList(data=tuple(_model(request, agent.name) for agent in await agents_of(request))))


async def get_model(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    name = request.match_info["name"]
    return reply(_model(request, (await services_of(request).agents.agent(tenant_of(request), name)).name))


def _model(request: web.Request, name: str) -> Model:
    return Model(id=name, created=int(services_of(request).about.started_at.timestamp()))
