"""Tool calls come out whole, however a server cuts and numbers them."""

import pytest

from app.models.openai_wire import Call, Function
from app.models.tool_calls import ToolCallAssembly


def part(
    index: int | None = None, call_id: str | None = None, name: str | None = None, arguments: object = None
) -> Call:
    return Call(index=index, id=call_id, function=Function(name=name, arguments=arguments))  # type: ignore[arg-type]


def assembled(*parts: Call) -> list[tuple[str, str, str]]:
    calls = ToolCallAssembly()
    for each in parts:
        calls.add(each)
    return [(call.id, call.name, call.arguments) for call in calls.finished()]


TWO = [("a", "get", '{"x":1}'), ("b", "put", "{}")]


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param(
            [
                part(0, "a", "get", ""),
                part(0, arguments='{"x"'),
                part(0, arguments=":1}"),
                part(1, "b", "put", "{}"),
            ],
            id="as documented",
        ),
        pytest.param(
            [part(0, "a", "get"), part(1, "b", "put"), part(1, arguments="{}"), part(0, arguments='{"x":1}')],
            id="interleaved",
        ),
        pytest.param(
            [part(0, "a", "get", '{"x"'), part(0, "a", "get", ":1}"), part(1, "b", "put", "{}")],
            id="id and name repeated",
        ),
        pytest.param(
            [part(None, "a", "get", '{"x"'), part(None, "a", arguments=":1}"), part(None, "b", "put", "{}")],
            id="no index, ids repeated",
        ),
        pytest.param(
            [part(None, "a", "get", '{"x"'), part(None, None, arguments=":1}"), part(None, "b", "put")],
            id="no index, id in the first only",
        ),
        pytest.param([part(0, "a", "get", '{"x":1}'), part(0, "b", "put", "{}")], id="every index is 0"),
        pytest.param([part(0, "a", "get", {"x": 1}), part(1, "b", "put", {})], id="arguments as objects"),
        pytest.param([part(0, "a", "get", '{"x":1}'), part(1, "b", "put")], id="no arguments"),
        pytest.param(
            [part(0, "a", "", ""), part(0, "", "get", '{"x":1}'), part(1, "b", "put", "{}")],
            id="name after the id",
        ),
        pytest.param(
            [part(0, "a", "get", '{"x"'), part(0, "other", None, ":1}"), part(1, "b", "put")],
            id="a new id in every part",
        ),
    ],
)
def test_two_calls_come_out_as_two_calls(parts: list[Call]) -> None:
    assert assembled(*parts) == TWO


def test_calls_without_ids_get_ids_of_their_own() -> None:
    first, second = assembled(part(0, None, "get", "{}"), part(1, "", "put", "{}"))
    assert first[1:] == ("get", "{}")
    assert second[1:] == ("put", "{}")
    assert first[0]
    assert second[0]
    assert first[0] != second[0]


def test_without_index_and_id_a_name_begins_a_call() -> None:
    calls = assembled(part(name="get", arguments='{"x":1}'), part(name="put", arguments="{}"))
    assert [call[1:] for call in calls] == [("get", '{"x":1}'), ("put", "{}")]


def test_an_id_that_repeats_within_the_reply_is_replaced() -> None:
    first, second = assembled(part(0, "a", "get", "{}"), part(1, "a", "put", "{}"))
    assert first[0] == "a"
    assert second[0] not in ("", "a")


def test_the_older_form_is_one_call() -> None:
    calls = ToolCallAssembly()
    calls.add_function(Function(name="get", arguments='{"x"'))
    calls.add_function(Function(arguments=":1}"))
    (call,) = calls.finished()
    assert (call.name, call.arguments) == ("get", '{"x":1}')
    assert call.id
