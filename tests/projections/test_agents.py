"""The `agents` view: the last version of each agent that was defined over HTTP."""

import asyncpg

from domain.agent import AgentDefinition
from domain.events import AgentDefined, AgentRemoved
from domain.ids import agent_stream
from projections.base import Fact
from projections.definitions import Agents
from projections.read.agents import defined_agents
from tests.projections.story import in_one_log, stream
from tests.projections.tables import folded


def agent(name: str, instructions: str = "") -> AgentDefinition:
    return AgentDefinition(name=name, provider="primary", model="small", instructions=instructions)


def defined(name: str, *instructions: str, tenant: str = "acme") -> list[Fact]:
    events = [AgentDefined(definition=agent(name, one), by="key\0") for one in instructions]
    return stream(*events, run_id=agent_stream(tenant, name), tenant=tenant)


async def test_the_last_version_is_the_row_wherever_pages_end(pool: asyncpg.Pool) -> None:
    """EVENT-6"""
    removed = stream(AgentRemoved(name="b"), run_id=agent_stream("acme", "b"), after=1)
    facts = in_one_log(
        defined("a", "one", "two \0"), defined("b", "x"), removed, defined("a", "z", tenant="zebra")
    )
    async with pool.acquire() as conn:
        together = await folded(conn, Agents(), facts)
        assert await folded(conn, Agents(), *([fact] for fact in facts)) == together
        versions = await conn.fetch("SELECT tenant_id, name, version FROM agent_definitions ORDER BY 1, 2")
    assert [tuple(row) for row in versions] == [("acme", "a", 2), ("acme", "b", 2), ("zebra", "a", 1)]
    assert await defined_agents(pool, "acme") == (agent("a", "two \0"),)
    assert await defined_agents(pool, "zebra") == (agent("a", "z"),)
