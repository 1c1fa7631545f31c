"""Workflows that are defined in code."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from app.agents import Agent
from app.functions.function import WorkflowFunction
from domain.errors import Rejected
from domain.workflow.definition import WorkflowDefinition


class InvalidWorkflow(Rejected):
    """The workflow cannot be what it is given as. The message says what to change."""

    code = "invalid_workflow"

    def __init__(self, workflow: str, reason: str) -> None:
        super().__init__(f"workflow {workflow!r}: {reason}")


class Workflow:
    """A workflow. At the top level of the application's module it is found by itself, with what it names.

    Each node is a mapping with its `name` and one of `agent`, `function` and `ask`, as in the settings;
    agents and functions may be named or given.
    """

    def __init__(
        self,
        name: str,
        *,
        kind: str = "sequential",
        nodes: Sequence[Mapping[str, Any]],
        description: str = "",
        join: Mapping[str, Any] | None = None,
        manager: Mapping[str, Any] | None = None,
        max_iterations: int = 10,
    ) -> None:
        self.agents: list[Agent] = []
        self.functions: list[WorkflowFunction] = []
        given = {
            "name": name,
            "kind": kind,
            "description": description,
            "nodes": [self._plain(node) for node in nodes],
            "join": None if join is None else self._plain(join),
            "manager": None if manager is None else self._plain(manager),
            "max_iterations": max_iterations,
        }
        try:
            self.definition = msgspec.convert(given, WorkflowDefinition)
        except (msgspec.MsgspecError, TypeError) as error:
            raise InvalidWorkflow(name, str(error)) from error

    @property
    def name(self) -> str:
        return self.definition.name

    def __repr__(self) -> str:
        return f"Workflow({self.name!r})"

    def _plain(self, node: Mapping[str, Any]) -> dict[str, Any]:
        return {key: self._named(value) for key, value in node.items()}

    def _named(self, value: Any) -> Any:
        match value:
            case Agent():
                self.agents.append(value)
                return value.name
            case WorkflowFunction():
                self.functions.append(value)
                return value.name
            case list() | tuple():
                return [self._named(item) for item in value]
            case Mapping():
                return self._plain(value)
            case _:
                return value
