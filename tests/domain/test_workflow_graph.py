"""Workflows as pictures."""

import pytest

from domain.workflow.definition import WorkflowDefinition, WorkflowKind, WorkflowNode, WorkflowStage
from domain.workflow.graph import graph_of, mermaid_of
from tests.domain.test_workflow_plan import agent, of_kind, person

PAIR = WorkflowStage(name="pair", together=(agent("b"), agent("c")))
JOIN = WorkflowNode(name="j", function="f")


@pytest.mark.parametrize(
    ("definition", "edges"),
    [
        (
            of_kind(WorkflowKind.SEQUENTIAL, agent("a"), PAIR, agent("d")),
            {"start>a", "a>b", "a>c", "b>d", "c>d", "d>end"},
        ),
        (
            of_kind(WorkflowKind.CONCURRENT, agent("a"), agent("b"), join=JOIN),
            {"start>a", "start>b", "a>j", "b>j", "j>end"},
        ),
        (of_kind(WorkflowKind.CONCURRENT, agent("a")), {"start>a", "a>end"}),
        (
            of_kind(WorkflowKind.HANDOFF, agent("a", to=("b",)), person("b")),
            {"start>a", "a>b", "a>end", "b>a"},
        ),
        (
            of_kind(WorkflowKind.GROUP_CHAT, agent("a"), agent("b")),
            {"start>a", "a>b", "b>a", "a>end", "b>end"},
        ),
        (
            of_kind(WorkflowKind.GROUP_CHAT, agent("a"), agent("b"), manager=JOIN),
            {"start>j", "j>a", "j>b", "a>j", "b>j", "j>end"},
        ),
    ],
)
def test_what_may_follow_what(definition: WorkflowDefinition, edges: set[str]) -> None:
    graph = graph_of(definition)
    names = {node.id: node.name for node in graph.nodes}
    assert {f"{names[edge.source]}>{names[edge.target]}" for edge in graph.edges} == edges
    assert len(graph.edges) == len(edges)


def test_nothing_that_a_node_says_can_break_the_picture() -> None:
    asking = of_kind(WorkflowKind.SEQUENTIAL, person("end", '"]; click n1 <b>&\n' + "x" * 60))
    drawn = mermaid_of(graph_of(asking)).splitlines()
    assert drawn[2] == f'    n1[/"end<br/>person: &quot;]; click n1 &lt;b&gt;&amp; {"x" * 21}…"/]'
    assert drawn[4:] == ["    start --> n1", "    n1 --> end_"]
