"""What a model is told of a tool, and which functions cannot be one."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import jsonschema
import msgspec
import pytest

from app.tools.context import ToolContext
from app.tools.errors import InvalidTool
from app.tools.tool import Tool, tool


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Size(TypedDict):
    width: int
    height: NotRequired[int]


@dataclass
class Address:
    street: str
    zip: str = "0000"


class Line(msgspec.Struct):
    item: str
    count: Annotated[int, msgspec.Meta(ge=1)] = 1


def parameters(function: Callable[..., Any]) -> dict[str, Any]:
    schema = tool(function).spec.parameters
    jsonschema.Draft202012Validator.check_schema(schema)
    return schema


def shape_of(annotation: Any, default: Any = ...) -> dict[str, Any]:
    """The schema of a single parameter `x`."""

    def function(x: Any) -> None: ...

    function.__annotations__["x"] = annotation
    if default is not ...:
        function.__defaults__ = (default,)
    shape: dict[str, Any] = parameters(function)["properties"]["x"]
    return shape


def test_a_function_becomes_an_object_of_its_parameters() -> None:
    def get_order(order_id: str, lines: list[int], limit: int = 10) -> None:
        """Look up an order,
        whoever made it.

        This paragraph is for people.
        """

    made = tool(get_order)
    assert (made.name, made.description) == ("get_order", "Look up an order, whoever made it.")
    assert made.spec.parameters == {
        "type": "object",
        "properties": {
            "order_id": {"type": "string"},
            "lines": {"type": "array", "items": {"type": "integer"}},
            "limit": {"type": "integer", "default": 10},
        },
        "required": ["order_id", "lines"],
        "additionalProperties": False,
    }


def test_no_parameters_are_an_empty_object() -> None:
    assert parameters(_nothing) == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


def _nothing() -> None: ...


@pytest.mark.parametrize(
    ("annotation", "shape"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (float, {"type": "number"}),
        (Any, {}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Literal["a", "b"], {"enum": ["a", "b"], "type": "string"}),
        (Literal[1, 2], {"enum": [1, 2], "type": "integer"}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (
            Annotated[str, msgspec.Meta(description="Its number.", min_length=2)],
            {"type": "string", "description": "Its number.", "minLength": 2},
        ),
    ],
)
def test_a_type_hint_is_told_as_a_schema(annotation: Any, shape: dict[str, Any]) -> None:
    assert shape_of(annotation) == shape


@pytest.mark.parametrize(
    ("annotation", "definition"),
    [
        (Colour, {"title": "Colour", "type": "string", "enum": ["blue", "red"]}),
        (Level, {"title": "Level", "type": "integer", "enum": [1, 2]}),
        (
            Size,
            {
                "title": "Size",
                "type": "object",
                "properties": {"width": {"type": "integer"}, "height": {"type": "integer"}},
                "required": ["width"],
            },
        ),
        (
            Address,
            {
                "title": "Address",
                "type": "object",
                "properties": {"street": {"type": "string"}, "zip": {"type": "string", "default": "0000"}},
                "required": ["street"],
            },
        ),
        (
            Line,
            {
                "title": "Line",
                "type": "object",
                "properties": {
                    "item": {"type": "string"},
                    "count": {"type": "integer", "minimum": 1, "default": 1},
                },
                "required": ["item"],
            },
        ),
    ],
)
def test_a_named_type_stands_beside_the_root_which_itself_is_inline(
    annotation: Any, definition: dict[str, Any]
) -> None:
    def function(one: Any, many: Any) -> None: ...

    function.__annotations__.update(one=annotation, many=list[annotation])
    schema = parameters(function)
    reference = {"$ref": f"#/$defs/{annotation.__name__}"}
    assert schema["type"] == "object"
    assert schema["properties"] == {"one": reference, "many": {"type": "array", "items": reference}}
    assert schema["$defs"] == {annotation.__name__: definition}


@pytest.mark.parametrize(
    ("annotation", "default", "told"),
    [
        (int | None, None, {"default": None}),
        (Colour, Colour.RED, {"default": "red"}),
        (Address, Address("Main"), {"default": {"street": "Main", "zip": "0000"}}),
        (list[int], [1], {"default": [1]}),
        (int, None, {}),
        (Any, object(), {}),
    ],
)
def test_a_default_is_told_where_a_model_could_send_it(
    annotation: Any, default: Any, told: dict[str, Any]
) -> None:
    shape = shape_of(annotation, default)
    assert {key: value for key, value in shape.items() if key == "default"} == told


def test_the_context_is_found_by_its_annotation_and_hidden_from_the_model() -> None:
    def function(a: int, ctx: ToolContext, again: ToolContext | None = None) -> None: ...

    assert list(parameters(function)["properties"]) == ["a"]
    assert tool(function).signature.context_names == ("ctx", "again")


def test_annotations_may_be_text() -> None:
    def function(a: "list[Address]", ctx: "ToolContext") -> None: ...

    assert parameters(function)["properties"] == {
        "a": {"type": "array", "items": {"$ref": "#/$defs/Address"}}
    }


def _starred(*things: int) -> None: ...
def _double_starred(**things: int) -> None: ...
def _positional(a: int, /) -> None: ...
def _bare(a) -> None: ...  # type: ignore[no-untyped-def]
def _dunder(__a: int) -> None: ...
def _complex(a: complex) -> None: ...
def _callable(a: Callable[[], int]) -> None: ...
def _ambiguous(a: Address | Line) -> None: ...
def _unknown(a: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (_starred, "'_starred': parameter 'things' cannot be given by name"),
        (_double_starred, "parameter 'things' cannot be given by name"),
        (_positional, "parameter 'a' cannot be given by name"),
        (_bare, "parameter 'a' needs a type annotation"),
        (_dunder, "parameter '__a' must not start with two underscores"),
        (_complex, "parameter 'a': .*complex.* cannot be sent as JSON"),
        (_callable, "parameter 'a': .*Callable.* cannot be sent as JSON"),
        (_ambiguous, "parameter 'a': .*Address.* cannot be sent as JSON"),
        (_unknown, "annotation of parameter a uses 'Nowhere', which is not known"),
    ],
)
def test_a_parameter_that_no_model_can_fill_is_named_at_once(
    function: Callable[..., Any], reason: str
) -> None:
    with pytest.raises(InvalidTool, match=reason):
        tool(function)


def _generator() -> Iterator[int]:
    yield 1


async def _async_generator() -> AsyncIterator[int]:
    yield 1


class _Callable:
    __name__ = "callable"

    def __call__(self) -> None: ...


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (_generator, "a generator cannot be a tool"),
        (_async_generator, "a generator cannot be a tool"),
        (_Callable(), "only functions can be tools"),
        (_Callable, "only functions can be tools"),
        (functools.partial(_nothing), "a name is 1 to 64"),
        (lambda: None, "a name is 1 to 64"),
    ],
)
def test_only_functions_can_be_tools(function: Callable[..., Any], reason: str) -> None:
    with pytest.raises(InvalidTool, match=reason):
        tool(function)


def test_a_wrapped_function_keeps_its_own_signature() -> None:
    def function(a: int) -> int:
        return a

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> int:
        return function(*args, **kwargs) + 1

    made: Tool = tool(wrapper)
    assert list(made.spec.parameters["properties"]) == ["a"]
    assert made(1) == 2
