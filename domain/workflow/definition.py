"""What a workflow is: its kind, its nodes, and what is wrong with one before it is saved (WF-1)."""

import re
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

import msgspec

from domain.agent import Name

INPUT = "input"
"""What a template calls the text that the workflow was given."""
PREVIOUS = "previous"
"""What a template calls the output of the stage before."""
MAX_NODES = 500
"""Of one workflow, which is looked at as a whole after each of its steps."""
PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*\}\}")


class WorkflowKind(StrEnum):
    SEQUENTIAL = "sequential"
    """One stage after the other."""
    CONCURRENT = "concurrent"
    """All nodes at once, then the join, if there is one."""
    HANDOFF = "handoff"
    """The first node, then whichever the last one hands over to."""
    GROUP_CHAT = "group_chat"
    """One speaker at a time, in turn or as the manager says, until somebody says that it is done."""


class NodeKind(StrEnum):
    AGENT = "agent"
    FUNCTION = "function"
    PERSON = "person"


class WorkflowNode(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One thing to do: ask an agent, call a registered function, or ask a person (`ask` is the question)."""

    name: Name
    agent: str | None = None
    function: str | None = None
    ask: str | None = None
    answers: tuple[str, ...] = ()
    """What the person may answer; empty: anything."""
    message: str | None = None
    """What the agent or function is given; `{{ input }}`, `{{ previous }}` and names of nodes have values."""
    parameters: dict[str, Any] = {}
    """The agent's."""
    to: tuple[str, ...] = ()
    """In a handoff: whom it may hand over to; empty: anybody."""

    @property
    def kind(self) -> NodeKind:
        if self.agent is not None:
            return NodeKind.AGENT
        return NodeKind.FUNCTION if self.function is not None else NodeKind.PERSON

    @property
    def template(self) -> str | None:
        return self.message if self.ask is None else self.ask


class WorkflowStage(WorkflowNode, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A node, or in a sequence several that run `together`: what follows gets the outputs of all of them."""

    together: tuple[WorkflowNode, ...] = ()

    @property
    def members(self) -> tuple[WorkflowNode, ...]:
        return self.together or (self,)


class WorkflowDefinition(
    msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True
):
    """A workflow as defined in code, in the settings or over HTTP. A run records the one that it is of."""

    name: Name
    kind: WorkflowKind
    description: str = ""
    nodes: tuple[WorkflowStage, ...]
    join: WorkflowNode | None = None
    """In a concurrent workflow: gets the outputs of all nodes, once."""
    manager: WorkflowNode | None = None
    """In a group chat: says who speaks next, or that it is done."""
    max_iterations: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10
    """In a handoff or group chat: how often somebody may have the word."""

    @property
    def members(self) -> tuple[WorkflowNode, ...]:
        """Every node that does something, in the order of the definition."""
        extra = tuple(node for node in (self.join, self.manager) if node is not None)
        return (*(node for stage in self.nodes for node in stage.members), *extra)

    def node(self, name: str) -> WorkflowNode:
        """Raise KeyError for a name that no node has."""
        found = next((node for node in self.members if node.name == name), None)
        if found is None:
            raise KeyError(name)
        return found


Flaw = tuple[str, str]
"""The key of what is wrong, and why it is."""


def flaws_in(definition: WorkflowDefinition) -> list[Flaw]:
    """Everything that is wrong with the definition in itself: nothing is looked up here."""
    placed = dict(placed_nodes(definition))
    if len(placed) > MAX_NODES:
        return [("nodes", f"a workflow has at most {MAX_NODES} nodes; this one has {len(placed)}")]
    return [
        *_flaws_of_kind(definition),
        *_flaws_of_names(definition, placed),
        *(flaw for key, node in placed.items() for flaw in _flaws_of_node(definition, key, node)),
        *_flaws_of_templates(definition, placed),
    ]


def placed_nodes(definition: WorkflowDefinition) -> Iterator[tuple[str, WorkflowNode]]:
    """Every node that does something, by its key."""
    for number, stage in enumerate(definition.nodes):
        if stage.together:
            for place, node in enumerate(stage.together):
                yield f"nodes.{number}.together.{place}", node
        else:
            yield f"nodes.{number}", stage
    if definition.join is not None:
        yield "join", definition.join
    if definition.manager is not None:
        yield "manager", definition.manager


def _flaws_of_kind(definition: WorkflowDefinition) -> Iterator[Flaw]:
    kind = definition.kind
    if not definition.nodes:
        yield "nodes", "a workflow needs at least one node"
    if kind in (WorkflowKind.HANDOFF, WorkflowKind.GROUP_CHAT) and len(definition.nodes) == 1:
        yield "nodes", f"a {kind} needs at least two nodes"
    for number, stage in enumerate(definition.nodes):
        if stage.together:
            yield from _flaws_of_together(kind, f"nodes.{number}", stage)
    yield from _flaws_of_extras(definition)


def _flaws_of_extras(definition: WorkflowDefinition) -> Iterator[Flaw]:
    kind = definition.kind
    if kind is not WorkflowKind.CONCURRENT and definition.join is not None:
        yield "join", "only a concurrent workflow has a join; in a sequence the next node gets all outputs"
    if kind is not WorkflowKind.GROUP_CHAT and definition.manager is not None:
        yield "manager", "only a group chat has a manager"
    for key in ("join", "manager"):
        node: WorkflowNode | None = getattr(definition, key)
        if node is not None and node.kind is NodeKind.PERSON:
            yield f"{key}.ask", f"a {key} is an agent or a function"


def _flaws_of_together(kind: WorkflowKind, key: str, stage: WorkflowStage) -> Iterator[Flaw]:
    if kind is not WorkflowKind.SEQUENTIAL:
        yield f"{key}.together", "only a sequence has nodes that run together"
    if len(stage.together) == 1:
        yield f"{key}.together", "needs at least two nodes"
    for field in ("agent", "function", "ask", "message"):
        if getattr(stage, field) is not None:
            yield f"{key}.{field}", "stands beside together; the nodes in there have their own"


def _flaws_of_names(definition: WorkflowDefinition, placed: Mapping[str, WorkflowNode]) -> Iterator[Flaw]:
    seen: set[str] = set()
    groups = {f"nodes.{number}": stage for number, stage in enumerate(definition.nodes) if stage.together}
    for key, node in {**placed, **groups}.items():
        if node.name in (INPUT, PREVIOUS):
            yield f"{key}.name", f"{node.name!r} means something else in templates; choose another name"
        if node.name in seen:
            yield f"{key}.name", f"two nodes are called {node.name!r}"
        seen.add(node.name)


def _flaws_of_node(definition: WorkflowDefinition, key: str, node: WorkflowNode) -> Iterator[Flaw]:
    does = [field for field in ("agent", "function", "ask") if getattr(node, field) is not None]
    if len(does) != 1:
        yield key, f"needs exactly one of agent, function and ask; it has {', '.join(does) or 'none'}"
    if node.answers and node.ask is None:
        yield f"{key}.answers", "only a person answers; it goes with ask"
    if node.ask is not None and not node.ask.strip():
        yield f"{key}.ask", "must not be empty"
    if node.ask is not None and node.message is not None:
        yield f"{key}.message", "a person is asked what ask says"
    if node.parameters and node.agent is None:
        yield f"{key}.parameters", "only an agent has parameters"
    yield from _flaws_of_targets(definition, key, node)


def _flaws_of_targets(definition: WorkflowDefinition, key: str, node: WorkflowNode) -> Iterator[Flaw]:
    if node.to and definition.kind is not WorkflowKind.HANDOFF:
        yield f"{key}.to", "only in a handoff somebody hands over"
    names = {stage.name for stage in definition.nodes}
    for name in node.to:
        if name not in names or name == node.name:
            yield f"{key}.to", f"there is no other node {name!r}"


def _flaws_of_templates(definition: WorkflowDefinition, placed: Mapping[str, WorkflowNode]) -> Iterator[Flaw]:
    for key, node in placed.items():
        known = _known_to(definition, key)
        for name in PLACEHOLDER.findall(node.template or ""):
            if name not in known:
                field = "message" if node.ask is None else "ask"
                told = ", ".join(known)
                yield f"{key}.{field}", f"{{{{ {name} }}}} has no value there; known are: {told}"


def _known_to(definition: WorkflowDefinition, key: str) -> tuple[str, ...]:
    """The names that have a value when the node of this key runs."""
    if key == "join":
        return (INPUT, PREVIOUS, *(stage.name for stage in definition.nodes))
    if definition.kind is not WorkflowKind.SEQUENTIAL or not key.startswith("nodes."):
        return (INPUT, PREVIOUS)
    earlier = definition.nodes[: int(key.split(".")[1])]
    return (INPUT, PREVIOUS, *(node.name for stage in earlier for node in stage.members))
