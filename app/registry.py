"""What this host can run: the agents and tools of application and settings, checked against each other."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from app.application import AppDefinitions as AppDefinitions
from app.application import load_app as load_app
from app.models.answer_check import flaw_in_schema
from app.models.provider_settings import ProviderSettings
from app.settings.errors import Problem, SettingsError
from app.settings.whole import Settings
from app.tools.registry import ToolRegistry
from app.tools.tool import NAME as TOOL_NAME
from app.tools.tool import Tool
from domain.agent import AgentDefinition, Link
from domain.agent_versions import AgentNotFound as AgentNotFound
from domain.errors import Rejected
from domain.parameters import PARAMETER_NAME, BadParameter, instantiate
from domain.queueing import DEFAULT_LANE

_SETTINGS = "settings"


class UnusableAgent(Rejected):
    """This definition names a provider or model that this host does not have. Choose those that it has."""

    code = "unusable_agent"

    def __init__(self, name: str, problems: Iterable[tuple[str, str]]) -> None:
        told = "; ".join(f"{key}: {reason}" for key, reason in problems)
        super().__init__(f"agent {name} cannot be run here: {told}")


class Catalog:
    """The agents of code and settings, and the tools of this host. It does not change while the host runs."""

    def __init__(
        self,
        agents: Iterable[AgentDefinition],
        tools: ToolRegistry,
        providers: Mapping[str, ProviderSettings],
        sources: Mapping[str, str] | None = None,
    ) -> None:
        """`sources`: where each agent is defined."""
        self._agents = {agent.name: agent for agent in agents}
        self._sources = sources or {}
        self._providers = providers
        self.tools = tools

    @classmethod
    def build(cls, settings: Settings, app: AppDefinitions) -> Self:
        """Raise SettingsError with every agent and key that names something which is not there."""
        tools = {tool.name: tool for tool in app.tools}
        agents = {agent.name: agent for agent in (*settings.agents.values(), *app.agents)}
        problems = [*_duplicates(settings, app), *_classifier_problems(settings, app)]
        sources = {name: _SETTINGS if name in settings.agents else app.source for name in agents}
        made = cls(agents.values(), ToolRegistry(tools.values()), settings.providers, sources)
        for agent in agents.values():
            problems += [
                Problem(source=sources[agent.name], key=f"agents.{agent.name}.{key}", reason=reason)
                for key, reason in made.flaws_of(agent)
            ]
        problems += _trigger_problems(settings, agents)
        if problems:
            raise SettingsError(problems)
        return made

    def flaws_of(
        self, agent: AgentDefinition, own: Mapping[str, AgentDefinition] | None = None
    ) -> list[tuple[str, str]]:
        """What a definition names that is not here, and what does not fit together: each with its key.

        `own`: agents of its tenant that it may ask, too.
        """
        return [
            *_tool_problems(agent, self.tools.by_name()),
            *_asked_problems(agent, {**(own or {}), **self._agents}),
            *_deliverable_problems(agent),
            *_parameter_problems(agent),
            *_link_problems(agent, self._providers),
        ]

    def has(self, name: str) -> bool:
        return name in self._agents

    def source_of(self, name: str) -> str | None:
        """Where the agent is defined; None if it is not in here."""
        return self._sources.get(name, _SETTINGS) if name in self._agents else None

    def agent(self, name: str) -> AgentDefinition:
        """Raise AgentNotFound."""
        found = self._agents.get(name)
        if found is None:
            raise AgentNotFound(name)
        return found

    def verify(self, definition: AgentDefinition) -> None:
        """A definition that does not come from here has links that are here. Raise UnusableAgent."""
        if problems := list(_link_problems(definition, self._providers)):
            raise UnusableAgent(definition.name, problems)

    def agents(self) -> tuple[AgentDefinition, ...]:
        """All of them, by name."""
        return tuple(self._agents[name] for name in sorted(self._agents))


def _trigger_problems(settings: Settings, agents: Mapping[str, AgentDefinition]) -> Iterator[Problem]:
    lanes = {*settings.async_run.lanes, DEFAULT_LANE}
    for name, trigger in settings.triggers.items():
        key = f"triggers.{name}"
        if trigger.agent not in agents:
            reason = f"there is no agent {trigger.agent!r}{_instead(trigger.agent, agents)}"
            yield Problem(source=_SETTINGS, key=f"{key}.agent", reason=reason)
            continue
        if trigger.lane not in lanes:
            yield Problem(source=_SETTINGS, key=f"{key}.lane", reason=f"there is no lane {trigger.lane!r}")
        try:
            instantiate(agents[trigger.agent], trigger.parameters)
        except BadParameter as error:
            yield Problem(source=_SETTINGS, key=f"{key}.{error.field}", reason=str(error))


def _duplicates(settings: Settings, app: AppDefinitions) -> Iterator[Problem]:
    for name in _repeated(tool.name for tool in app.tools):
        yield Problem(source=app.source, key=f"tools.{name}", reason="two tools have this name")
    for name in _repeated(agent.name for agent in app.agents):
        yield Problem(source=app.source, key=f"agents.{name}", reason="two agents have this name")
    for agent in app.agents:
        if agent.name in settings.agents:
            reason = "is in the settings too; give one of them another name"
            yield Problem(source=app.source, key=f"agents.{agent.name}", reason=reason)


def _tool_problems(agent: AgentDefinition, tools: Mapping[str, Tool]) -> Iterator[tuple[str, str]]:
    for name in _repeated(agent.tools):
        yield "tools", f"names {name!r} twice"
    for name in dict.fromkeys(agent.tools):
        if name not in tools:
            yield "tools", f"there is no tool {name!r}{_instead(name, tools)}"


def _asked_problems(
    agent: AgentDefinition, agents: Mapping[str, AgentDefinition]
) -> Iterator[tuple[str, str]]:
    """The agents that it may call look to its model like tools."""
    for name in _repeated(agent.agents):
        yield "agents", f"names {name!r} twice"
    for name in dict.fromkeys(agent.agents):
        if name not in agents:
            yield "agents", f"there is no agent {name!r}{_instead(name, agents)}"
            continue
        if name in agent.tools:
            yield "agents", f"{name!r} is the name of one of its tools too; a model could not tell them apart"
        if not TOOL_NAME.fullmatch(name):
            yield "agents", f"{name!r} cannot be called as a tool: no dots, and 64 characters at most"
        if "message" in agents[name].parameters:
            yield "agents", f"{name!r} has a parameter 'message', which is what a call to an agent brings"


def _parameter_problems(agent: AgentDefinition) -> Iterator[tuple[str, str]]:
    for name in agent.parameters:
        if not PARAMETER_NAME.fullmatch(name):
            told = "has letters, digits and underscores, and begins with a letter or one underscore"
            yield "parameters", f"{name!r} cannot be the name of one, which {told}"


def _deliverable_problems(agent: AgentDefinition) -> Iterator[tuple[str, str]]:
    if agent.deliverable_tool is not None and agent.deliverable_tool not in (*agent.tools, *agent.agents):
        yield "deliverable_tool", f"the agent may not call {agent.deliverable_tool!r}; add it to its tools"
    if agent.response_schema is not None:
        flaw = flaw_in_schema(agent.response_schema)
        if flaw is not None:
            yield "response_schema", flaw


def _link_problems(
    agent: AgentDefinition, providers: Mapping[str, ProviderSettings]
) -> Iterator[tuple[str, str]]:
    yield from _binding_problems(agent.links, providers)
    if agent.compaction is not None:
        links = agent.compaction.summarizer.links
        yield from _within("compaction.summarizer", _binding_problems(links, providers))
        yield from _too_late(agent, agent.compaction.threshold, providers)
    if agent.loop is not None:
        yield from _within("loop.judge", _binding_problems(agent.loop.judge.links, providers))


def _binding_problems(
    links: tuple[Link, ...], providers: Mapping[str, ProviderSettings]
) -> Iterator[tuple[str, str]]:
    for place, link in enumerate(links):
        prefix = "" if place == 0 else f"fallbacks.{place - 1}."
        if link in links[:place]:
            yield f"fallbacks.{place - 1}", f"names {link} again; a link has its retry, and no second one"
        for key, reason in _misnamed(link, providers):
            yield f"{prefix}{key}", reason


def _too_late(
    agent: AgentDefinition, threshold: int, providers: Mapping[str, ProviderSettings]
) -> Iterator[tuple[str, str]]:
    """Where a model's own limit would come first, nothing would ever be summarised."""
    provider = providers.get(agent.provider)
    known = provider.models.get(agent.model) if provider else None
    window = known.context_window if known else None
    if window is not None and threshold >= window:
        reason = f"{threshold} tokens is no less than the {window} that {agent.links[0]} can read at all"
        yield "compaction.threshold", reason


def _within(key: str, problems: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    return ((f"{key}.{below}", reason) for below, reason in problems)


def _misnamed(link: Link, providers: Mapping[str, ProviderSettings]) -> Iterator[tuple[str, str]]:
    provider = providers.get(link.provider)
    if provider is None:
        yield (
            "provider",
            f"there is no provider {link.provider!r}{_instead(link.provider, providers)}",
        )
    elif provider.models and link.model not in provider.models:
        known = _instead(link.model, provider.models)
        yield "model", f"provider {link.provider!r} lists no model {link.model!r}{known}"


def _instead(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there is {', '.join(known)}" if known else "; there is none"


def _classifier_problems(settings: Settings, app: AppDefinitions) -> Iterator[Problem]:
    for classifier in app.classifiers:
        name = classifier.provider
        if name is not None and name not in settings.providers:
            reason = f"there is no provider {name!r}{_instead(name, settings.providers)}"
            yield Problem(source=app.source, key="classifiers", reason=reason)


def _repeated(names: Iterable[str]) -> list[str]:
    listed = list(names)
    return [name for name in dict.fromkeys(listed) if listed.count(name) > 1]
