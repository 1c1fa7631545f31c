"""The workflows of this host and the functions that their nodes call, checked against its agents."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Self

from app.application import AppDefinitions
from app.functions.function import WorkflowFunction
from app.registry import Catalog
from app.settings.errors import Problem, SettingsError
from app.settings.whole import Settings
from domain.agent import AgentDefinition
from domain.errors import Rejected
from domain.parameters import BadParameter, instantiate
from domain.workflow.definition import Flaw, WorkflowDefinition, WorkflowNode, flaws_in, placed_nodes

_SETTINGS = "settings"
_SECTION = "workflow_definitions"


OwnAgents = Mapping[str, AgentDefinition]
"""Agents that a tenant has defined over HTTP, by name."""

_NONE: OwnAgents = MappingProxyType({})


class UnusableWorkflow(Rejected):
    """Something in the definition is wrong, or names what this host lacks. `problems` say what, by key."""

    code = "invalid_definition"

    def __init__(self, name: str, problems: Iterable[Flaw]) -> None:
        self.problems = tuple(problems)
        told = "; ".join(f"{key}: {reason}" for key, reason in self.problems)
        super().__init__(f"workflow {name}: {told}")


class WorkflowCatalog:
    """Workflows of code and settings. They do not change while the host runs."""

    def __init__(
        self,
        workflows: Iterable[WorkflowDefinition],
        functions: Iterable[WorkflowFunction],
        agents: Catalog,
    ) -> None:
        self._workflows = {workflow.name: workflow for workflow in workflows}
        self._functions = {function.name: function for function in functions}
        self._agents = agents

    @classmethod
    def build(cls, settings: Settings, app: AppDefinitions, agents: Catalog) -> Self:
        """Raise SettingsError with every workflow and key that is wrong or names what is not there."""
        workflows = (*settings.workflow_definitions.values(), *app.workflows)
        catalog = cls(workflows, app.functions, agents)
        problems = list(_duplicates(settings, app))
        for workflow in workflows:
            source = _SETTINGS if workflow.name in settings.workflow_definitions else app.source
            problems += [
                Problem(source=source, key=f"{_SECTION}.{workflow.name}.{key}", reason=reason)
                for key, reason in catalog.flaws_of(workflow)
            ]
        if problems:
            raise SettingsError(problems)
        return catalog

    def find(self, name: str) -> WorkflowDefinition | None:
        return self._workflows.get(name)

    def function(self, name: str) -> WorkflowFunction | None:
        return self._functions.get(name)

    def workflows(self) -> tuple[WorkflowDefinition, ...]:
        """All of them, by name."""
        return tuple(self._workflows[name] for name in sorted(self._workflows))

    def flaws_of(self, workflow: WorkflowDefinition, own: OwnAgents = _NONE) -> list[Flaw]:
        """Everything that is wrong with it, here (WF-1). `own` are agents of its tenant's own."""
        flaws = flaws_in(workflow)
        if self.has_agent(workflow.name):
            flaws.append(("name", "an agent has this name; give one of them another"))
        for key, node in placed_nodes(workflow):
            flaws += [(f"{key}.{field}", reason) for field, reason in self._misnamed(node, own)]
        return flaws

    def has_agent(self, name: str) -> bool:
        """Whether an agent of code or settings has this name."""
        return self._agents.has(name)

    def verify(self, workflow: WorkflowDefinition, own: OwnAgents = _NONE) -> None:
        """Raise UnusableWorkflow if there is anything wrong with it here."""
        if flaws := self.flaws_of(workflow, own):
            raise UnusableWorkflow(workflow.name, flaws)

    def _misnamed(self, node: WorkflowNode, own: OwnAgents) -> Iterator[Flaw]:
        if node.function is not None and node.function not in self._functions:
            told = _instead(node.function, self._functions)
            yield "function", f"there is no function {node.function!r}{told}"
        if node.agent is None:
            return
        known = {**own, **{agent.name: agent for agent in self._agents.agents()}}
        if node.agent not in known:
            yield "agent", f"there is no agent {node.agent!r}{_instead(node.agent, known)}"
            return
        try:
            instantiate(known[node.agent], node.parameters)
        except BadParameter as error:
            yield error.field, str(error)


def _duplicates(settings: Settings, app: AppDefinitions) -> Iterator[Problem]:
    for name in _repeated(function.name for function in app.functions):
        reason = "two functions have this name"
        yield Problem(source=app.source, key=f"functions.{name}", reason=reason)
    for name in _repeated(workflow.name for workflow in app.workflows):
        yield Problem(source=app.source, key=f"{_SECTION}.{name}", reason="two workflows have this name")
    for workflow in app.workflows:
        if workflow.name in settings.workflow_definitions:
            reason = "is in the settings too; give one of them another name"
            yield Problem(source=app.source, key=f"{_SECTION}.{workflow.name}", reason=reason)


def _repeated(names: Iterable[str]) -> list[str]:
    listed = list(names)
    return [name for name in dict.fromkeys(listed) if listed.count(name) > 1]


def _instead(name: str, known: Mapping[str, Any]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there is {', '.join(sorted(known))}" if known else "; there is none"
