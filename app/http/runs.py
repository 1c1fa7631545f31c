"""Runs: the list, one of them, what went into it, which tools it called."""

from typing import Any

import msgspec
from aiohttp import web

from app.http.bodies import NoQuery, RunsQuery, TreeQuery
from app.http.decoding import query_of, run_id_of
from app.http.events import name_run
from app.http.replies import reply
from app.http.run_tools import displayed
from app.http.services import services_of, tenant_of
from app.http.watching import creation_of
from domain.events import Recorded, RunCreated, RunEvent
from domain.ids import RunId
from domain.messages import Message
from domain.submission import Overrides
from projections.read.runs import list_runs as read_runs
from projections.read.tree import read_tree
from projections.run_record import record_of
from projections.tool_calls import ToolCallRecord, tool_calls_of


class RunInput(msgspec.Struct, frozen=True, kw_only=True):
    """What the run was started with, whole: all that it takes to start it again."""

    run_id: RunId
    agent: str
    messages: tuple[Message, ...]
    session_id: str | None
    parameters: dict[str, Any]
    overrides: Overrides | None
    """What the caller asked of this one run over what the agent is defined to be; null: nothing."""

    @classmethod
    def of(cls, run_id: RunId, created: RunCreated) -> "RunInput":
        return cls(
            run_id=run_id,
            agent=created.agent,
            messages=created.input,
            session_id=created.session_id,
            parameters=created.parameters,
            overrides=created.overrides,
        )


class ToolCallList(msgspec.Struct, frozen=True, kw_only=True):
    """One run's tool calls, in the order in which its model asked for them."""

    run_id: RunId
    tool_calls: tuple[ToolCallRecord, ...]


async def list_runs(request: web.Request) -> web.Response:
    wanted, services = query_of(request, RunsQuery), services_of(request)
    return reply(
        await read_runs(
            services.pool,
            tenant_of(request),
            wanted.filter,
            skip=wanted.skip,
            take=wanted.take,
            with_total=wanted.with_total,
        )
    )


async def get_run(request: web.Request) -> web.Response:
    """Folded from the run's own stream, so that it is never behind."""
    return reply(record_of(await _history(request)))


async def get_input(request: web.Request) -> web.Response:
    query_of(request, NoQuery)
    run_id = name_run(request, run_id_of(request))
    created = await creation_of(services_of(request).log, tenant_of(request), run_id)
    return reply(RunInput.of(run_id, created))


async def get_tree(request: web.Request) -> web.Response:
    """The tree that the run belongs to, from its root on, whichever of its runs is asked for."""
    wanted, services, tenant = query_of(request, TreeQuery), services_of(request), tenant_of(request)
    run_id = name_run(request, run_id_of(request))
    created = await creation_of(services.log, tenant, run_id)
    root = created.root_run_id or run_id
    return reply(await read_tree(services.pool, tenant, root, skip=wanted.skip, take=wanted.take))


async def list_tool_calls(request: web.Request) -> web.Response:
    history, limit = await _history(request), services_of(request).recording.display_limit
    calls = tuple(displayed(call, limit) for call in tool_calls_of(history))
    return reply(ToolCallList(run_id=run_id_of(request), tool_calls=calls))


async def _history(request: web.Request) -> list[Recorded[RunEvent]]:
    query_of(request, NoQuery)
    run_id = name_run(request, run_id_of(request))
    return await services_of(request).runs.load(tenant_of(request), run_id)
