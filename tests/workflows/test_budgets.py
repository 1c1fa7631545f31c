"""What a spent budget does to a workflow, over all runs of its chain (BUDGET-5, BUDGET-7)."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from app.identity import new_run_id
from app.store.event_log import Change
from domain.budget import Limit
from domain.events import (
    InputAnswered,
    InputRequest,
    Recorded,
    RunAwaitingInput,
    RunContinued,
    RunCreated,
    RunEvent,
    RunFailed,
    RunKind,
    RunStarted,
)
from domain.events.workflow import WorkflowOpened
from domain.failure import ErrorClass
from domain.ids import DEFAULT_TENANT, RunId, StreamId, Version, run_stream
from domain.messages import UserMessage
from domain.spent import executing_s
from domain.workflow.definition import WorkflowDefinition, WorkflowKind, WorkflowStage
from tests.http.client import Answer, Client
from tests.workflows.conftest import Workshop, agent, function, person, sequence
from tests.workflows.test_going_on import RUNS, respond, resume
from tests.workflows.test_running import of_type, run
from tracon import WorkflowContext, workflow_function


@workflow_function
def pay(text: str, context: WorkflowContext) -> str:
    context.report_usage("0.75", "USD", "render")
    return "paid"


@workflow_function(attempts=3, delay="1ms")
def pay_and_fail(text: str, context: WorkflowContext) -> str:
    context.report_usage("0.75", "USD", "render")
    raise ConnectionError("after it was paid")


@workflow_function(starts_when_budget_is_spent=True)
def keep(text: str) -> str:
    return "kept"


@workflow_function
def pay_in_francs(text: str, context: WorkflowContext) -> str:
    context.report_usage("1000", "CHF", "render")
    context.report_usage(None, "USD", "render")
    return "paid"


FUNCTIONS = (pay, pay_and_fail, keep, pay_in_francs)
CEILING = {"max_total_cost": "1.0"}


async def opened(workshop: Workshop, *nodes: dict[str, Any], **graph: Any) -> Client:
    return await workshop.open(sequence(*nodes), functions=FUNCTIONS, agent_graph=graph or CEILING)


def refused(answer: Answer) -> tuple[int, str, str]:
    return answer.status, answer.body["code"], answer.body["run"]["error_class"]


async def its_last(client: Client, answer: Answer) -> list[str]:
    """The types of the last three events of the run that failed."""
    return [event["type"] for event in (await client.events(answer.body["run"]["id"]))[-3:]]


async def test_a_function_does_not_start_when_the_cost_is_spent(workshop: Workshop) -> None:
    """BUDGET-5: error type, class, message with node and setting, events invoked then failed."""
    client = await opened(workshop, function("a", "pay"), function("b", "pay"), function("c"), function("d"))
    answer = await run(client)
    assert refused(answer) == (429, "run_budget_exceeded", "QuotaExceeded")
    assert answer.body["detail"].startswith("node c: ")
    assert "agent_graph.max_total_cost" in answer.body["detail"]
    events = await client.events(answer.body["run"]["id"])
    assert [event["type"] for event in events[-3:]] == ["NodeInvoked", "NodeFailed", "RunFailed"]
    assert workshop.calls == []


async def test_a_refusal_is_not_tried_again(workshop: Workshop) -> None:
    """BUDGET-5: the attempt that spent the ceiling is the last."""
    client = await opened(workshop, function("a", "pay_and_fail"))
    answer = await run(client)
    assert answer.body["code"] == "run_budget_exceeded"
    failures = of_type(await client.events(answer.body["run"]["id"]), "NodeFailed")
    assert [failure["error_type"] for failure in failures] == [
        "node_failed",
        "node_failed",
        "run_budget_exceeded",
    ]
    assert failures[-1]["retry_in_ms"] is None


async def test_a_function_that_is_exempt_starts_all_the_same(workshop: Workshop) -> None:
    """BUDGET-5"""
    client = await opened(workshop, function("a", "pay"), function("b", "pay"), function("c", "keep"))
    assert (await run(client)).body["answer"] == "kept"


async def test_tokens_do_not_keep_a_function_from_starting(workshop: Workshop) -> None:
    """BUDGET-5"""
    client = await opened(workshop, agent("a"), function("b"), max_total_tokens=1)
    assert (await run(client)).body["answer"] == "noted echo of hello"


async def test_a_function_does_not_start_when_the_time_is_over(workshop: Workshop) -> None:
    """BUDGET-5"""
    client = await opened(workshop, function("a"), max_duration=0.000001)
    answer = await run(client)
    assert refused(answer) == (429, "run_budget_exceeded", "QuotaExceeded")
    assert "agent_graph.max_duration" in answer.body["detail"]
    assert await its_last(client, answer) == ["NodeInvoked", "NodeFailed", "RunFailed"]
    assert workshop.calls == []


async def test_what_cannot_be_counted_does_not_count(workshop: Workshop) -> None:
    """BUDGET-3"""
    client = await opened(workshop, function("a", "pay_in_francs"), function("b"))
    answer = await run(client)
    assert answer.body["status"] == "Completed"
    reports = of_type(await client.events(answer.body["id"]), "UsageReported")
    assert [(one["cause"], one["counted"]) for one in reports] == [("a", False), ("a", False)]


async def test_agents_and_functions_of_a_workflow_have_one_budget(workshop: Workshop) -> None:
    """BUDGET-1"""
    client = await opened(workshop, function("a", "pay"), function("b", "pay"), agent("c"))
    answer = await run(client)
    assert refused(answer) == (429, "run_budget_exceeded", "QuotaExceeded")
    assert "agent_graph.max_total_cost" in answer.body["detail"]


async def test_agents_of_a_workflow_count_as_child_runs(workshop: Workshop) -> None:
    """BUDGET-2"""
    client = await opened(workshop, agent("a"), agent("b"), max_total_runs=1)
    answer = await run(client)
    assert refused(answer) == (429, "run_budget_exceeded", "QuotaExceeded")
    assert Limit.RUNS.setting in answer.body["detail"]


async def test_a_run_that_goes_on_with_an_answer_starts_from_what_was_spent(workshop: Workshop) -> None:
    """BUDGET-7"""
    client = await opened(
        workshop, function("a", "pay"), person("ok"), function("b", "pay"), person("sure"), function("c")
    )
    first = (await run(client)).body["id"]
    second = (await respond(client, first, "yes")).body["id"]
    third = await respond(client, second, "yes")
    assert refused(third) == (429, "run_budget_exceeded", "QuotaExceeded")
    assert third.body["detail"].startswith("node c: the tree of runs has spent a cost of 1.50")
    assert await its_last(client, third) == ["NodeInvoked", "NodeFailed", "RunFailed"]
    assert workshop.calls == []


async def test_a_run_that_is_resumed_starts_from_what_was_spent(workshop: Workshop) -> None:
    """BUDGET-7: it is refused at the same node again."""
    client = await opened(workshop, function("a", "pay"), function("b", "pay"), function("c"))
    failed = (await run(client)).body["run"]["id"]
    again = await resume(client, failed)
    assert refused(again) == (429, "run_budget_exceeded", "QuotaExceeded")
    assert again.body["detail"].startswith("node c: ")
    assert await its_last(client, again) == ["NodeInvoked", "NodeFailed", "RunFailed"]


async def test_child_runs_of_a_chain_count_together(workshop: Workshop) -> None:
    """BUDGET-7"""
    client = await opened(workshop, agent("a"), person("ok"), agent("b"), max_total_runs=1)
    waits = (await run(client)).body["id"]
    answer = await respond(client, waits, "yes")
    assert refused(answer) == (429, "run_budget_exceeded", "QuotaExceeded")


def test_the_time_that_a_person_takes_does_not_count() -> None:
    """BUDGET-7: a run is at work up to its end, whenever the answer comes."""
    definition = WorkflowDefinition(
        name="w", kind=WorkflowKind.SEQUENTIAL, nodes=(WorkflowStage(name="ok", ask="?"),)
    )
    request = InputRequest(id="r", node="ok")
    moments: list[tuple[int, RunEvent]] = [
        (0, WorkflowOpened(definition=definition)),
        (60, RunStarted(host="h")),
        (65, RunAwaitingInput(requests=(request,))),
        (7200, InputAnswered(request_id="r", node="ok", answer="yes")),
        (7200, RunContinued(by=new_run_id())),
    ]
    history = [
        Recorded[RunEvent](
            stream_id=StreamId(UUID(int=1)),
            sequence=Version(number),
            position=number,
            at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=second),
            tenant=DEFAULT_TENANT,
            event=event,
        )
        for number, (second, event) in enumerate(moments, 1)
    ]
    assert executing_s(history) == 5


async def a_chain_of(client: Client, runs: int, before: RunId | None = None) -> str:
    """Failed runs, each of which continues the one before it. Return the last one's id."""
    definition = WorkflowDefinition(
        name="w", kind=WorkflowKind.SEQUENTIAL, nodes=(WorkflowStage(name="a", function="note"),)
    )
    for _ in range(runs):
        run_id = new_run_id()
        events = (
            RunCreated(
                tenant=DEFAULT_TENANT,
                kind=RunKind.WORKFLOW,
                agent="w",
                input=(UserMessage(content="hello"),),
                continued_from_run_id=before,
            ),
            WorkflowOpened(definition=definition),
            RunStarted(host="gone"),
            RunFailed(error="x", error_type="node_failed", error_class=ErrorClass.INTERNAL),
        )
        change = Change(
            stream_id=run_stream(run_id), expected=Version(0), tenant=DEFAULT_TENANT, events=events
        )
        await client.host.services.log.append(change)
        before = run_id
    return str(before)


@pytest.mark.parametrize(("runs", "status"), [(127, 200), (128, 429)])
async def test_a_chain_of_129_runs_fails_before_its_first_node(
    workshop: Workshop, runs: int, status: int
) -> None:
    """BUDGET-7"""
    client = await workshop.open(sequence(function("a")))
    answer = await resume(client, await a_chain_of(client, runs))
    assert answer.status == status
    if status != 200:
        assert answer.body["code"] == "run_chain_too_long"
        events = [event["type"] for event in await client.events(answer.body["run"]["id"])]
        assert events == ["RunCreated", "WorkflowOpened", "RunStarted", "RunFailed"]
        assert workshop.calls == []


async def test_a_chain_that_cannot_be_read_fails_before_its_first_node(workshop: Workshop) -> None:
    """BUDGET-7"""
    client = await workshop.open(sequence(function("a")))
    answer = await resume(client, await a_chain_of(client, 2, before=new_run_id()))
    assert (answer.status, answer.body["code"]) == (503, "run_chain_unreadable")
    assert workshop.calls == []


async def test_the_list_of_checkpoints_of_an_endless_chain_is_refused(workshop: Workshop) -> None:
    client = await workshop.open(sequence(function("a")))
    last = await a_chain_of(client, 129)
    answer = await client.get(f"{RUNS}/{last}/checkpoints")
    assert (answer.status, answer.body["code"]) == (409, "chain_too_long")


async def test_a_spent_quota_keeps_a_function_from_starting(workshop: Workshop) -> None:
    """BUDGET-6: at the same place as the budget, with the quota's own type."""
    client = await workshop.open(
        sequence(function("a", "pay"), function("b", "pay"), function("c")),
        functions=FUNCTIONS,
        quotas={"q": {"metric": "cost", "period": "day", "limit": "1.0"}},
    )
    answer = await run(client)
    assert refused(answer) == (429, "tenant_quota_exceeded", "QuotaExceeded")
    assert answer.body["detail"].startswith("node c: ")
    assert "1.5 of 1 cost per day" in answer.body["detail"]
    assert "quotas.q.limit raises it" in answer.body["detail"]
    assert await its_last(client, answer) == ["NodeInvoked", "NodeFailed", "RunFailed"]
    assert workshop.calls == []


async def test_a_spent_quota_keeps_an_agent_of_a_workflow_from_its_model(workshop: Workshop) -> None:
    """BUDGET-6: what a function has spent, the agent after it has not."""
    client = await workshop.open(
        sequence(function("a", "pay"), function("b", "pay"), agent("c")),
        functions=FUNCTIONS,
        quotas={"q": {"metric": "cost", "period": "day", "limit": "1.0"}},
    )
    answer = await run(client)
    assert refused(answer) == (429, "tenant_quota_exceeded", "QuotaExceeded")
    assert "quotas.q.limit raises it" in answer.body["detail"]
    [child] = of_type(await client.events(answer.body["run"]["id"]), "ChildRunStarted")
    events = await client.events(child["run_id"])
    assert [event["type"] for event in events] == ["RunCreated", "RunStarted", "RunFailed"]
    assert events[-1]["data"]["error_type"] == "tenant_quota_exceeded"


async def test_an_answer_that_there_is_no_quota_for_can_be_given_later(workshop: Workshop) -> None:
    """BUDGET-6: the question stays."""
    client = await workshop.open(
        sequence(person("ok")), quotas={"q": {"metric": "runs", "period": "day", "limit": "1"}}
    )
    run_id = (await run(client)).body["id"]
    answer = await respond(client, run_id, "yes")
    assert (answer.status, answer.body["code"]) == (429, "tenant_quota_exceeded")
    listed = await client.get(f"{RUNS}/{run_id}/requests")
    assert len(listed.body["requests"]) == 1
