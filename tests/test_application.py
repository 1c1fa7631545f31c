"""The user's own module: found, loaded, and searched; what it breaks is told with its own line."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from app.registry import AppDefinitions, load_app
from app.settings.errors import SettingsError

SHOP = '''
    from __future__ import annotations

    from tracon import Agent, ToolContext, tool


    class Order:
        def __init__(self, number: int) -> None:
            self.number = number


    @tool(effect="read")
    def get_order(number: int, context: ToolContext) -> str:
        """Look up an order."""
        return str(Order(number).number)


    def not_a_tool() -> None: ...


    get_order_again = get_order
    support = Agent("support", provider="primary", model="small", tools=[get_order])
'''


class Folder:
    """Where the user keeps the application."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, name: str, text: str) -> str:
        file = self.path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(dedent(text), "utf-8")
        return str(file)

    def refusal(self, target: str) -> str:
        with pytest.raises(SettingsError) as refused:
            load_app(target)
        (problem,) = refused.value.problems
        assert problem.source == target
        return problem.reason


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Folder]:
    modules = set(sys.modules)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.chdir(tmp_path)
    yield Folder(tmp_path)
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def names(app: AppDefinitions) -> tuple[list[str], list[str]]:
    return [tool.name for tool in app.tools], [agent.name for agent in app.agents]


def test_nothing_to_load_is_an_application_without_anything() -> None:
    assert load_app(None) == AppDefinitions()


def test_a_file_gives_its_tools_and_agents_each_once(folder: Folder) -> None:
    target = folder.write("shop.py", SHOP)
    app = load_app(target)
    assert names(app) == (["get_order"], ["support"])
    assert app.agents[0].tools == ("get_order",)
    assert app.source == target


def test_a_module_is_found_from_the_working_directory(folder: Folder) -> None:
    folder.write("shop/__init__.py", "")
    folder.write("shop/main.py", SHOP)
    assert names(load_app("shop.main")) == (["get_order"], ["support"])


def test_a_file_may_be_named_like_a_package_of_ours_and_import_its_neighbours(folder: Folder) -> None:
    folder.write("neighbour_of_app.py", SHOP)
    target = folder.write("app.py", "from neighbour_of_app import get_order, support")
    assert names(load_app(target)) == (["get_order"], ["support"])
    assert sys.modules["app"].__name__ == "app"
    assert sys.modules["app"].__file__ != target


def test_tools_and_agents_in_lists_and_tools_that_only_an_agent_names_are_found(folder: Folder) -> None:
    folder.write("tools_of_shop.py", SHOP)
    target = folder.write(
        "lists.py",
        """
        import tools_of_shop as shop
        from domain.agent import AgentDefinition
        from tracon import Agent, tool

        def one() -> None: ...
        def two() -> None: ...

        TOOLS = [tool(one), (tool(two))]
        AGENTS = (
            Agent("a", provider="p", model="m", tools=[shop.get_order, "one"]),
            AgentDefinition(name="b", provider="p", model="m"),
        )
        """,
    )
    assert names(load_app(target)) == (["one", "two", "get_order"], ["b", "a"])


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("nowhere.py", "there is no such file"),
        ("./nowhere", "there is no such file"),
        ("nowhere.at_all", "there is no module 'nowhere'"),
        ("json.nowhere", "there is no module 'json.nowhere'"),
        ("", "ValueError: Empty module name"),
    ],
)
def test_what_is_not_there_is_named(folder: Folder, target: str, reason: str) -> None:
    assert folder.refusal(target) == reason


def test_a_module_that_registers_nothing_is_refused(folder: Folder) -> None:
    """Whoever named it meant something to be in it."""
    assert folder.refusal("json").endswith("at its top level")


def test_a_file_that_is_no_python_is_refused(folder: Folder) -> None:
    assert folder.refusal(folder.write("shop.txt", SHOP)) == "is not a Python file"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("\nx = 1 / 0", "line 2 (x = 1 / 0): ZeroDivisionError: division by zero"),
        ("def f(:", "line 1: invalid syntax"),
        ("import sys\nsys.exit(3)", "line 2 (sys.exit(3)): SystemExit: 3"),
        (
            "import nowhere_else",
            "line 1 (import nowhere_else): ModuleNotFoundError: No module named 'nowhere_else'",
        ),
        (
            "import json\njson.loads('{')",
            "line 2 (json.loads('{')): JSONDecodeError: Expecting property name enclosed in double quotes:"
            " line 1 column 2 (char 1)",
        ),
        (
            "from tracon import tool\n@tool\ndef f(a): ...",
            "line 2 (@tool): tool 'f': parameter 'a' needs a type annotation",
        ),
        (
            "from tracon import Agent\nAgent('x', provider='p', model=5)",
            "line 2 (Agent('x', provider='p', model=5)): agent 'x': Expected `str`, got `int` - at `$.model`",
        ),
    ],
)
def test_a_broken_file_is_told_with_its_own_failing_line(folder: Folder, text: str, reason: str) -> None:
    assert folder.refusal(folder.write("broken.py", text)) == reason
    assert "tracon_application_broken" not in sys.modules


def test_a_failing_line_in_a_neighbour_is_told_with_the_neighbours_name(folder: Folder) -> None:
    neighbour = folder.write("broken_neighbour.py", "def fail():\n    raise KeyError('x')")
    target = folder.write("shop.py", "import broken_neighbour\nbroken_neighbour.fail()")
    assert folder.refusal(target) == f"{neighbour}, line 2 (raise KeyError('x')): KeyError: 'x'"
