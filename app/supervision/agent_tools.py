"""Agents as other agents' models see them: a tool with a message and the agent's parameters."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from app.definitions.lookup import AgentLookup
from app.registry import AgentNotFound, Catalog, UnusableAgent
from app.supervision.child_runs import ChildAsk
from app.tools.arguments import read_arguments
from app.tools.schema import json_schema
from domain.agent import AgentDefinition
from domain.events import ToolEffect
from domain.ids import RunId
from domain.messages import UserMessage
from domain.tool import ToolSpec

MESSAGE = "message"
_SIMPLE = (bool, int, float, str, list, dict)
_BY_HARM = (ToolEffect.READ, ToolEffect.WRITE, ToolEffect.DESTRUCTIVE, ToolEffect.EXTERNAL)


class AgentTool(msgspec.Struct, frozen=True, kw_only=True):
    """`effect` is the strongest of what the agent, and those that it can ask in turn, can do."""

    definition: AgentDefinition
    spec: ToolSpec
    arguments: type[msgspec.Struct]
    effect: ToolEffect
    safe_to_repeat: bool

    def ask(self, call_id: str, arguments: str, in_place_of: RunId | None = None) -> ChildAsk:
        """What the model asks of the agent. Raise InvalidArguments."""
        sent = read_arguments(arguments, self.arguments)
        given = {
            name: value for name in sent.__struct_fields__ if (value := getattr(sent, name)) is not UNSET
        }
        message = UserMessage(content=given.pop(MESSAGE))
        return ChildAsk(
            agent=self.definition.name,
            messages=(message,),
            parameters=given,
            cause=call_id,
            in_place_of=in_place_of,
        )


class AgentTools:
    """The agents of tenants as tools. What one looks like follows its definition of the moment."""

    def __init__(self, catalog: Catalog, lookup: AgentLookup) -> None:
        self._catalog = catalog
        self._lookup = lookup
        self._made: dict[tuple[str, str], AgentTool] = {}
        self._own: dict[tuple[str, str], AgentDefinition] = {}
        """Those of tenants that runs of this host may ask, as they were when the last such run began."""

    async def prepare(self, tenant: str, names: Iterable[str]) -> None:
        """Look these up, and all that they can ask in turn. Raise StoreUnavailable."""
        waiting, seen = list(names), set[str]()
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                found = await self._looked_up(tenant, name)
                waiting += found.agents if found else ()

    def get(self, tenant: str, name: str) -> AgentTool | None:
        """None where there is no such agent any more."""
        definition = self._find(tenant, name)
        if definition is None:
            return None
        made = self._made.get((tenant, name))
        if made is None or made.definition is not definition:
            made = self._made[tenant, name] = self._make(tenant, definition)
        return made

    def specs(self, tenant: str, names: Iterable[str]) -> tuple[ToolSpec, ...]:
        """What a model is told of these agents, in this order."""
        return tuple(tool.spec for name in names if (tool := self.get(tenant, name)))

    async def _looked_up(self, tenant: str, name: str) -> AgentDefinition | None:
        if self._catalog.has(name):
            return self._catalog.agent(name)
        try:
            found = self._own[tenant, name] = await self._lookup.agent(tenant, name)
        except (AgentNotFound, UnusableAgent):
            self._own.pop((tenant, name), None)
            return None
        return found

    def _make(self, tenant: str, definition: AgentDefinition) -> AgentTool:
        effect, safe_to_repeat = self._effect_of(tenant, definition)
        return AgentTool(
            definition=definition,
            spec=spec_of(definition),
            arguments=_arguments_of(definition),
            effect=effect,
            safe_to_repeat=safe_to_repeat,
        )

    def _effect_of(self, tenant: str, definition: AgentDefinition) -> tuple[ToolEffect, bool]:
        """The strongest effect, and whether a repetition of all that has it does no harm."""
        tools = [
            tool
            for agent in self._reachable(tenant, definition)
            for name in agent.tools
            if (tool := self._catalog.tools.get(name))
        ]
        strongest = max((tool.effect for tool in tools), key=_BY_HARM.index, default=ToolEffect.READ)
        harmful = [tool for tool in tools if tool.effect in (ToolEffect.DESTRUCTIVE, ToolEffect.EXTERNAL)]
        return strongest, bool(harmful) and all(tool.safe_to_repeat for tool in harmful)

    def _reachable(self, tenant: str, definition: AgentDefinition) -> Iterator[AgentDefinition]:
        """The agent and all that it can ask, directly or not. They may ask in circles."""
        seen: dict[str, AgentDefinition] = {}
        waiting = [definition]
        while waiting:
            agent = waiting.pop()
            if agent.name not in seen:
                seen[agent.name] = agent
                waiting += [found for name in agent.agents if (found := self._find(tenant, name))]
        return iter(seen.values())

    def _find(self, tenant: str, name: str) -> AgentDefinition | None:
        return self._catalog.agent(name) if self._catalog.has(name) else self._own.get((tenant, name))


def spec_of(definition: AgentDefinition) -> ToolSpec:
    """What a model is told of the agent."""
    schema = json_schema(_arguments_of(definition))
    for name, default in definition.parameters.items():
        if default is not None and name != MESSAGE:
            schema["properties"][name]["default"] = default
    return ToolSpec(name=definition.name, description=definition.description, parameters=schema)


def _arguments_of(definition: AgentDefinition) -> type[msgspec.Struct]:
    fields: list[Any] = [(MESSAGE, str), *_parameter_fields(definition.parameters)]
    return msgspec.defstruct("arguments", fields, kw_only=True, frozen=True, forbid_unknown_fields=True)


def _parameter_fields(parameters: Mapping[str, Any]) -> Iterator[Any]:
    """A parameter is of its default's type; one without a default must be sent, whatever it is."""
    for name, default in parameters.items():
        if name == MESSAGE:  # it was defined after an agent that asks this one, or that would be refused
            continue
        if default is None:
            yield name, str
        else:
            hint = next((kind for kind in _SIMPLE if isinstance(default, kind)), str)
            yield name, hint | UnsetType, UNSET
