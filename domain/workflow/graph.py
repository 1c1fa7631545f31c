"""A workflow as a picture: its nodes and which may follow which, as data and as Mermaid text."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import pairwise

import msgspec

from domain.workflow.definition import (
    NodeKind,
    WorkflowDefinition,
    WorkflowKind,
    WorkflowNode,
    WorkflowStage,
)
from domain.workflow.texts import targets_of

START, END = "(start)", "(end)"
"""No node can be called that."""


class GraphNodeKind(StrEnum):
    START = "start"
    AGENT = "agent"
    FUNCTION = "function"
    PERSON = "person"
    END = "end"


class GraphNode(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    """What edges call it."""
    name: str
    kind: GraphNodeKind
    does: str = ""
    """The agent, the function, or the question."""


class GraphEdge(msgspec.Struct, frozen=True, kw_only=True):
    source: str
    target: str


class WorkflowGraph(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a workflow between its start and its end, and what may follow what."""

    name: str
    kind: WorkflowKind
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]


def graph_of(definition: WorkflowDefinition) -> WorkflowGraph:
    ids = {node.name: f"n{number}" for number, node in enumerate(definition.members, 1)}
    ids |= {START: "start", END: "end"}
    edges = dict.fromkeys(_EDGES[definition.kind](definition))
    return WorkflowGraph(
        name=definition.name,
        kind=definition.kind,
        nodes=(
            GraphNode(id="start", name="start", kind=GraphNodeKind.START),
            *(_node(ids[node.name], node) for node in definition.members),
            GraphNode(id="end", name="end", kind=GraphNodeKind.END),
        ),
        edges=tuple(GraphEdge(source=ids[source], target=ids[target]) for source, target in edges),
    )


def mermaid_of(graph: WorkflowGraph) -> str:
    """The graph as Mermaid's flowchart text."""
    shapes = {
        GraphNodeKind.START: ("([", "])"),
        GraphNodeKind.END: ("([", "])"),
        GraphNodeKind.AGENT: ("[", "]"),
        GraphNodeKind.FUNCTION: ("[[", "]]"),
        GraphNodeKind.PERSON: ("[/", "/]"),
    }
    lines = ["flowchart TD"]
    for node in graph.nodes:
        left, right = shapes[node.kind]
        lines.append(f'    {_mermaid_id(node.id)}{left}"{_label(node)}"{right}')
    lines += [f"    {_mermaid_id(edge.source)} --> {_mermaid_id(edge.target)}" for edge in graph.edges]
    return "\n".join(lines) + "\n"


def _mermaid_id(node_id: str) -> str:
    """Plain `end` ends a block in Mermaid's language."""
    return f"{node_id}_" if node_id == "end" else node_id


def _label(node: GraphNode) -> str:
    does = node.does if len(node.does) <= 40 else f"{node.does[:39]}…"
    return f"{node.name}<br/>{node.kind}: {_escaped(does)}" if does else node.name


def _escaped(text: str) -> str:
    """Nothing in a label may end it, or be taken for markup."""
    marks = {"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;", "\n": " ", "\r": " "}
    return "".join(marks.get(letter, letter) for letter in text)


def _node(node_id: str, node: WorkflowNode) -> GraphNode:
    does = node.agent or node.function or node.ask or ""
    return GraphNode(id=node_id, name=node.name, kind=GraphNodeKind(node.kind.value), does=does)


Edges = Iterator[tuple[str, str]]


def _sequential(definition: WorkflowDefinition) -> Edges:
    stages: list[Sequence[str]] = [[START], *map(_names, definition.nodes), [END]]
    for before, after in pairwise(stages):
        yield from _all_to_all(before, after)


def _concurrent(definition: WorkflowDefinition) -> Edges:
    nodes = [stage.name for stage in definition.nodes]
    last = [END] if definition.join is None else [definition.join.name]
    yield from _all_to_all([START], nodes)
    yield from _all_to_all(nodes, last)
    if definition.join is not None:
        yield definition.join.name, END


def _handoff(definition: WorkflowDefinition) -> Edges:
    yield START, definition.nodes[0].name
    for stage in definition.nodes:
        for target in targets_of(definition, stage):
            yield stage.name, target
        if stage.kind is not NodeKind.PERSON:
            yield stage.name, END


def _group_chat(definition: WorkflowDefinition) -> Edges:
    names = [stage.name for stage in definition.nodes]
    if definition.manager is None:
        yield START, names[0]
        for name, following in pairwise([*names, names[0]]):
            yield name, following
            yield name, END
        return
    lead = definition.manager.name
    yield START, lead
    for name in names:
        yield lead, name
        yield name, lead
    yield lead, END


_EDGES = {
    WorkflowKind.SEQUENTIAL: _sequential,
    WorkflowKind.CONCURRENT: _concurrent,
    WorkflowKind.HANDOFF: _handoff,
    WorkflowKind.GROUP_CHAT: _group_chat,
}


def _names(stage: WorkflowStage) -> list[str]:
    return [node.name for node in stage.members]


def _all_to_all(sources: Iterable[str], targets: Sequence[str]) -> Edges:
    for source in sources:
        for target in targets:
            yield source, target
