"""Functions that nodes of workflows call, as their authors write them."""

from collections.abc import Callable
from typing import Any

import pytest

from app.application import load_app
from app.functions.function import InvalidFunction, WorkflowFunction
from app.functions.workflow import InvalidWorkflow
from domain.workflow.definition import WorkflowKind
from tracon import Agent, Workflow, WorkflowContext, workflow_function


def test_a_function_stays_one_that_can_be_called() -> None:
    @workflow_function
    def shout(text: str) -> str:
        """Make it loud.

        Very loud.
        """
        return text.upper()

    assert shout("hello") == "HELLO"
    assert (shout.name, shout.description, shout.attempts) == ("shout", "Make it loud.", 1)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (lambda: None, (None, None)),
        (lambda text: None, ("text", None)),
        (lambda text, more=1: None, ("text", None)),
    ],
)
def test_it_is_given_what_it_has_parameters_for(function: Callable[..., Any], names: object) -> None:
    made = workflow_function(name="f")(function)
    assert (made.text_name, made.context_name) == names


def test_the_context_is_found_by_its_annotation() -> None:
    @workflow_function
    def both(context: WorkflowContext, text: str) -> str:
        return text

    assert (both.text_name, both.context_name) == ("text", "context")


def test_waits_grow_by_the_multiplier_and_not_without_end() -> None:
    """WF-5"""
    made = workflow_function(attempts=100, delay="2s", multiplier=3)(plain)
    assert [made.delay_after(attempt) for attempt in (1, 2, 3, 90)] == [2, 6, 18, 3600]
    steep = workflow_function(attempts=100, delay="2s", multiplier=1e300)(plain)
    assert steep.delay_after(99) == 3600
    at_once = workflow_function(attempts=100, delay=0, multiplier=1e300)(plain)
    assert at_once.delay_after(99) == 0


def plain(text: str) -> str:
    return text


def generator(text: str) -> Any:
    yield text


def two(text: str, other: str) -> str:
    return text + other


def starred(*texts: str) -> str:
    return "".join(texts)


@pytest.mark.parametrize(
    ("function", "terms", "told"),
    [
        (generator, {}, "a generator has no output"),
        (two, {}, "nobody gives it 'other'"),
        (starred, {}, "cannot be given by name"),
        (len, {}, "only functions"),
        (plain, {"name": "not a name"}, "a name has letters"),
        (plain, {"attempts": 0}, "attempts must be from 1 to 100"),
        (plain, {"delay": "soon"}, "delay: 'soon' is not a duration"),
        (plain, {"delay": -1}, "delay must not be negative"),
        (plain, {"multiplier": 0.5}, "multiplier must be at least 1"),
        (plain, {"multiplier": float("nan")}, "multiplier must be at least 1"),
    ],
)
def test_what_cannot_be_called_by_a_node_is_refused(function: Any, terms: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidFunction, match=told):
        workflow_function(**terms)(function)


def test_a_workflow_in_code_names_its_agents_and_functions_itself() -> None:
    writer = Agent("writer", provider="p", model="m")
    publish = workflow_function(name="publish")(plain)
    workflow = Workflow(
        "article",
        nodes=[
            {"name": "write", "agent": writer},
            {"name": "both", "together": [{"name": "a", "function": publish}, {"name": "b", "agent": "x"}]},
        ],
    )
    assert workflow.definition.kind is WorkflowKind.SEQUENTIAL
    assert [(node.agent, node.function) for node in workflow.definition.members] == [
        ("writer", None),
        (None, "publish"),
        ("x", None),
    ]
    assert (workflow.agents, workflow.functions) == ([writer], [publish])


def test_a_workflow_that_cannot_be_one_is_refused_where_it_is_written() -> None:
    with pytest.raises(InvalidWorkflow, match=r"workflow 'w': .*kind"):
        Workflow("w", kind="circular", nodes=[])
    with pytest.raises(InvalidWorkflow, match="agnet"):
        Workflow("w", nodes=[{"name": "a", "agnet": "x"}])


def test_a_module_is_searched_for_workflows_and_what_they_name(tmp_path: Any) -> None:
    (tmp_path / "pages.py").write_text(
        "from tracon import Agent, Workflow, workflow_function\n"
        "@workflow_function\n"
        "def publish(text: str) -> str:\n"
        "    return text\n"
        "pages = [Workflow('article', nodes=[\n"
        "    {'name': 'a', 'agent': Agent('writer', provider='p', model='m')},\n"
        "    {'name': 'b', 'function': publish},\n"
        "])]\n"
    )
    app = load_app(str(tmp_path / "pages.py"))
    assert [workflow.name for workflow in app.workflows] == ["article"]
    assert [agent.name for agent in app.agents] == ["writer"]
    assert [function.name for function in app.functions] == ["publish"]
    assert isinstance(app.functions[0], WorkflowFunction)
