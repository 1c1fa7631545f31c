"""A kill in the middle of a workflow, and what its oracle complains of."""

from typing import Any

import pytest

from domain.events import RunCompleted, RunEvent, RunFailed
from domain.events.workflow import NodeCompleted, NodeInvoked, NodeOutput, SuperStepCompleted
from domain.failure import ErrorClass
from domain.workflow.definition import NodeKind
from ops.chaos import workflow_kills
from ops.chaos.oracle.workflows import Chain, wrong_with

GONE = RunFailed(error="gone", error_type="interrupted", error_class=ErrorClass.INFRASTRUCTURE)
PLACES = {"find": 1, "weigh": 2, "taste": 3, "count": 3, "approve": 4, "publish": 5}
BODIES = [{"node": node, "call_key": node} for node in ("weigh", "count", "publish")]


def invoked(node: str) -> NodeInvoked:
    return NodeInvoked(step=PLACES[node], node=node, kind=NodeKind.FUNCTION)


def done(node: str) -> tuple[RunEvent, ...]:
    return invoked(node), NodeCompleted(output=NodeOutput(step=PLACES[node], node=node, text=""))


BEFORE: tuple[RunEvent, ...] = (
    *done("find"),
    SuperStepCompleted(step=1),
    *done("weigh"),
    SuperStepCompleted(step=2),
)
AFTER: tuple[RunEvent, ...] = (invoked("approve"), *done("publish"), RunCompleted(answer="x"))


def complaints(*runs: tuple[RunEvent, ...], bodies: Any = BODIES) -> list[str]:
    return list(wrong_with(Chain(runs=runs), bodies))


def test_there_is_nothing_to_complain_of() -> None:
    assert complaints((*BEFORE, invoked("taste"), GONE), (*done("taste"), *AFTER)) == []


@pytest.mark.parametrize(
    ("runs", "bodies", "told"),
    [
        (((*BEFORE, GONE), (*done("weigh"), *AFTER)), BODIES, "weigh of super-step 2 is run again"),
        (((*BEFORE, GONE),), BODIES, "it came to no end: interrupted"),
        (((*BEFORE, *done("publish"), *AFTER),), BODIES, "publish has 2 outputs"),
        (((*BEFORE, *done("publish"), RunCompleted(answer="x")),), BODIES, "without a question"),
        (((*BEFORE, *AFTER),), BODIES[1:], "weigh was called under 0 keys"),
        (
            ((*BEFORE, *AFTER),),
            [*BODIES, {"node": "count", "call_key": "x"}],
            "count was called under 2 keys",
        ),
        (((*BEFORE, *AFTER),), [*BODIES, *BODIES, *BODIES], "publish began 3 times"),
    ],
)
def test_what_breaks_a_promise_is_told(runs: Any, bodies: Any, told: str) -> None:
    """WF-1, WF-2, WF-3"""
    assert any(told in complaint for complaint in complaints(*runs, bodies=bodies))


async def test_a_workflow_whose_host_is_killed_comes_to_its_end_and_repeats_nothing_that_was_finished() -> (
    None
):
    """WF-2, WF-4: `python -m ops.chaos workflow-kills` does this at each place."""
    [rehearsed] = await workflow_kills.run(["node.body.after"], [2])
    assert rehearsed.violations == ()
    assert rehearsed.invoked == {"find": 1, "weigh": 1, "taste": 2, "count": 2, "approve": 1, "publish": 1}
