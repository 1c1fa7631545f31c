"""What is wrong with a workflow is told with the key of it, before it is saved (WF-1)."""

from typing import Any

import msgspec
import pytest

from domain.workflow.definition import WorkflowDefinition, flaws_in


def defined(**fields: Any) -> WorkflowDefinition:
    return msgspec.convert({"name": "w", "kind": "sequential", **fields}, WorkflowDefinition)


A, B = {"name": "a", "agent": "x"}, {"name": "b", "agent": "x"}
PAIR = {"name": "pair", "together": [A, B]}


@pytest.mark.parametrize(
    "fields",
    [
        {"nodes": [A, {"name": "ok", "ask": "Good: {{ a }}?", "answers": ["yes"]}]},
        {"nodes": [PAIR, {"name": "c", "function": "f", "message": "{{ a }} {{b}} {{ input }}"}]},
        {"kind": "concurrent", "nodes": [A, B], "join": {"name": "j", "function": "f", "message": "{{ a }}"}},
        {"kind": "handoff", "nodes": [{**A, "to": ["b"]}, B], "max_iterations": 3},
        {"kind": "group_chat", "nodes": [A, B], "manager": {"name": "m", "agent": "x"}},
    ],
)
def test_there_is_nothing_wrong_with_these(fields: dict[str, Any]) -> None:
    assert flaws_in(defined(**fields)) == []


@pytest.mark.parametrize(
    ("fields", "key", "reason"),
    [
        ({"nodes": []}, "nodes", "at least one"),
        ({"nodes": [{"name": "a"}]}, "nodes.0", "exactly one of"),
        ({"nodes": [{**A, "function": "f"}]}, "nodes.0", "it has agent, function"),
        ({"nodes": [A, A]}, "nodes.1.name", "two nodes are called 'a'"),
        ({"nodes": [PAIR, A]}, "nodes.1.name", "two nodes are called 'a'"),
        ({"nodes": [{"name": "input", "agent": "x"}]}, "nodes.0.name", "another name"),
        ({"nodes": [{"name": "ok", "ask": " "}]}, "nodes.0.ask", "must not be empty"),
        ({"nodes": [{**A, "answers": ["yes"]}]}, "nodes.0.answers", "only a person"),
        ({"nodes": [{"name": "ok", "ask": "?", "message": "x"}]}, "nodes.0.message", "what ask says"),
        ({"nodes": [{"name": "f", "function": "f", "parameters": {"x": 1}}]}, "nodes.0.parameters", "agent"),
        ({"nodes": [{**A, "message": "{{ b }}"}, B]}, "nodes.0.message", "known are: input, previous"),
        ({"nodes": [A, {"name": "ok", "ask": "{{ c }}"}]}, "nodes.1.ask", "known are: input, previous, a"),
        ({"nodes": [{"name": "p", "together": [A]}]}, "nodes.0.together", "at least two"),
        ({"nodes": [{**PAIR, "agent": "x"}]}, "nodes.0.agent", "beside together"),
        ({"nodes": [A], "join": B}, "join", "only a concurrent"),
        ({"nodes": [A], "manager": B}, "manager", "only a group chat"),
        ({"nodes": [{**A, "to": ["b"]}, B]}, "nodes.0.to", "only in a handoff"),
        ({"kind": "concurrent", "nodes": [PAIR]}, "nodes.0.together", "only a sequence"),
        ({"kind": "concurrent", "nodes": [A], "join": {"name": "j", "ask": "?"}}, "join.ask", "function"),
        ({"kind": "handoff", "nodes": [A]}, "nodes", "at least two"),
        ({"kind": "handoff", "nodes": [{**A, "to": ["c"]}, B]}, "nodes.0.to", "no other node 'c'"),
        ({"kind": "group_chat", "nodes": [A]}, "nodes", "at least two"),
    ],
)
def test_what_is_wrong_is_told_with_its_key(fields: dict[str, Any], key: str, reason: str) -> None:
    """WF-1"""
    found = dict(flaws_in(defined(**fields)))
    assert reason in found[key]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "circular", "nodes": [A]}, r"\$\.kind"),
        ({"nodes": [{**A, "agnet": "x"}]}, "unknown field `agnet`"),
        ({"nodes": [A], "max_iterations": 0}, r"\$\.max_iterations"),
    ],
)
def test_what_types_can_say_is_refused_by_them(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        defined(**fields)
