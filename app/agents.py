"""Agents that are defined in code."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from app.tools.tool import Tool
from domain.agent import AgentDefinition, Compaction, Link, Loop, ModelOptions
from domain.errors import Rejected


class InvalidAgent(Rejected):
    """The agent cannot be what it is given as. The message says what to change."""

    code = "invalid_agent"

    def __init__(self, agent: str, reason: str) -> None:
        super().__init__(f"agent {agent!r}: {reason}")


class Agent:
    """An agent. At the top level of the application's module it is found by itself, and so are its tools.

    `tools` are tools or names of tools, `agents` other agents that it may call, or their names; `fallbacks`
    are links, or mappings with a provider and a model. `compaction` and `loop` may be mappings, too.
    """

    def __init__(
        self,
        name: str,
        *,
        provider: str,
        model: str,
        instructions: str = "",
        description: str = "",
        fallbacks: Sequence[Link | Mapping[str, str]] = (),
        tools: Sequence[Tool | str] = (),
        agents: Sequence["Agent | str"] = (),
        options: ModelOptions | Mapping[str, Any] | None = None,
        parameters: Mapping[str, Any] | None = None,
        provider_settings: Mapping[str, Any] | None = None,
        fallback_mode: str = "continue",
        stream_recovery: str = "cut",
        cache_replies: bool = False,
        deliverable_tool: Tool | str | None = None,
        response_schema: Mapping[str, Any] | None = None,
        compaction: Compaction | Mapping[str, Any] | None = None,
        loop: Loop | Mapping[str, Any] | None = None,
    ) -> None:
        self.tools = tuple(tool for tool in tools if isinstance(tool, Tool))
        self.agents = tuple(agent for agent in agents if isinstance(agent, Agent))
        given = {
            "name": name,
            "instructions": instructions,
            "description": description,
            "provider": provider,
            "model": model,
            "fallbacks": fallbacks,
            "tools": [tool.name if isinstance(tool, Tool) else tool for tool in tools],
            "agents": [agent.name if isinstance(agent, Agent) else agent for agent in agents],
            "options": options or {},
            "parameters": parameters or {},
            "provider_settings": provider_settings or {},
            "fallback_mode": fallback_mode,
            "stream_recovery": stream_recovery,
            "cache_replies": cache_replies,
            "deliverable_tool": getattr(deliverable_tool, "name", deliverable_tool),
            "response_schema": response_schema,
            "compaction": compaction,
            "loop": loop,
        }
        try:
            self.definition = msgspec.convert(msgspec.to_builtins(given), AgentDefinition)
        except (msgspec.MsgspecError, TypeError) as error:
            raise InvalidAgent(name, str(error)) from error

    @property
    def name(self) -> str:
        return self.definition.name

    def __repr__(self) -> str:
        return f"Agent({self.name!r})"
