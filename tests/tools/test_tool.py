"""The terms of a tool: what may be said, and what holds when nothing is said."""

from typing import Any

import pytest

from app.tools.errors import InvalidTool
from app.tools.registry import ToolRegistry
from app.tools.tool import tool
from domain.events import ToolEffect


def look_up(a: int = 1) -> int:
    """Look something up."""
    return a


def test_the_default_terms() -> None:
    """TOOL-1: timeout 30 s, no retries, no approval, 64 KiB of output."""
    made = tool(look_up)
    assert (made.timeout_s, made.retries, made.output_limit) == (30.0, 0, 65536)
    assert not made.requires_approval
    assert not made.safe_to_repeat


def test_an_undeclared_effect_is_the_worst_that_it_can_be() -> None:
    """CONT-3: only what was declared harmless may be repeated after a crash."""
    assert tool(look_up).effect is ToolEffect.EXTERNAL


def test_every_term_may_be_given() -> None:
    made = tool(
        name="look",
        description="Look.",
        effect="read",
        safe_to_repeat=True,
        timeout="1m",
        retries=2,
        requires_approval=True,
        output_limit=10,
    )(look_up)
    assert (made.name, made.description, made.effect) == ("look", "Look.", ToolEffect.READ)
    assert (made.timeout_s, made.retries, made.output_limit) == (60.0, 2, 10)
    assert made.safe_to_repeat
    assert made.requires_approval


def test_a_tool_can_still_be_called_as_the_function_it_is() -> None:
    assert tool(look_up)(a=3) == 3


@pytest.mark.parametrize(
    ("terms", "reason"),
    [
        ({"name": "has space"}, "a name is 1 to 64"),
        ({"name": "x" * 65}, "a name is 1 to 64"),
        ({"name": "x\n"}, "a name is 1 to 64"),
        ({"effect": "harmless"}, "effect 'harmless' is none of read, write, destructive, external"),
        ({"timeout": "soon"}, "timeout: 'soon' is not a duration"),
        ({"timeout": 0}, "timeout must be positive, and is 0"),
        ({"timeout": float("inf")}, "timeout: inf is not a duration"),
        ({"retries": -1}, "retries must not be negative"),
        ({"output_limit": 0}, "output_limit must be at least one byte"),
    ],
)
def test_terms_that_make_no_sense_are_refused(terms: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidTool, match=reason):
        tool(**terms)(look_up)


def test_a_registry_finds_tools_by_name_and_describes_them_in_the_order_asked() -> None:
    one, two = tool(name="one")(look_up), tool(name="two")(look_up)
    registry = ToolRegistry([two, one])
    assert registry.names() == ("one", "two")
    assert registry.get("one") is one
    assert registry.get("three") is None
    assert [spec.name for spec in registry.specs(["two", "three", "one"])] == ["two", "one"]


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(InvalidTool, match="'look_up': there are two tools of this name"):
        ToolRegistry([tool(look_up), tool(look_up)])
