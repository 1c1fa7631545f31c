"""Workflows over HTTP: their runs, their events, and what becomes of nodes that fail (WF)."""

from itertools import groupby
from typing import Any

from tests.http.client import STREAM, Answer, Client, Stream
from tests.workflows.conftest import Workshop, agent, function, person, sequence
from tracon import Done, Handoff, workflow_function

RUN = "/tracon/api/workflows/w/run"


async def run(client: Client, message: str = "hello", **headers: str) -> Answer:
    return await client.post(RUN, {"message": message}, **headers)


async def kinds(client: Client, run_id: str) -> list[str]:
    return [event["type"] for event in await client.events(run_id)]


def of_type(events: list[dict[str, Any]], *types: str) -> list[dict[str, Any]]:
    return [event["data"] for event in events if event["type"] in types]


async def test_a_workflow_runs_its_nodes_and_has_an_answer(workshop: Workshop) -> None:
    """WF-1"""
    client = await workshop.open(sequence(agent("a"), function("b")))
    answer = await run(client)
    assert (answer.status, answer.body["status"]) == (200, "Completed")
    assert answer.body["answer"] == "noted echo of hello"
    assert answer.body["kind"] == "workflow"


async def test_every_super_step_and_node_is_an_event_and_a_checkpoint_follows_each(
    workshop: Workshop,
) -> None:
    """WF-2"""
    client = await workshop.open(sequence(agent("a"), function("b")))
    answer = await run(client)
    assert await kinds(client, answer.body["id"]) == [
        "RunCreated",
        "WorkflowOpened",
        "RunStarted",
        "SuperStepStarted",
        "NodeInvoked",
        "ChildRunStarted",
        "NodeCompleted",
        "SuperStepCompleted",
        "SuperStepStarted",
        "NodeInvoked",
        "NodeCompleted",
        "SuperStepCompleted",
        "RunCompleted",
    ]
    checkpoints = await client.get(f"/tracon/api/workflows/runs/{answer.body['id']}/checkpoints")
    assert [one["step"] for one in checkpoints.body["checkpoints"]] == [1, 2]


async def test_an_agent_node_is_a_child_run(workshop: Workshop) -> None:
    client = await workshop.open(sequence(agent("a")))
    answer = await run(client)
    [started] = of_type(await client.events(answer.body["id"]), "ChildRunStarted")
    child = (await client.get(f"/tracon/api/runs/{started['run_id']}")).body
    assert (child["agent"], child["status"], child["depth"]) == ("echo", "Completed", 1)
    assert (child["parent_run_id"], started["cause"]) == (answer.body["id"], "a")


async def test_a_watcher_sees_the_nodes_as_they_come(workshop: Workshop) -> None:
    client = await workshop.open(sequence(function("a"), function("b", "hold")))
    async with client.session.post(RUN, json={"message": "hello"}, headers=STREAM) as response:
        stream = Stream(response)
        seen = await stream.until("SuperStepCompleted")
        assert [frame.id for frame in seen] == list(range(1, len(seen) + 1))
        workshop.held.let_go.set()
        assert (await stream.rest())[-1].event == "RunCompleted"


async def test_a_join_is_called_once_with_all_its_inputs(workshop: Workshop) -> None:
    """WF-1"""
    client = await workshop.open(
        {
            "name": "w",
            "kind": "concurrent",
            "nodes": [agent("a"), function("b"), agent("c", "yes")],
            "join": function("j"),
        }
    )
    answer = await run(client)
    assert answer.body["status"] == "Completed"
    assert [dict(call.inputs) for call in workshop.calls if call.node == "j"] == [
        {"a": "echo of hello", "b": "noted hello", "c": "yes"}
    ]


async def test_nodes_of_one_super_step_run_at_the_same_time(workshop: Workshop) -> None:
    """WF-1: the one that is quick does not wait for the one that is held."""
    client = await workshop.open(
        {"name": "w", "kind": "concurrent", "nodes": [function("a", "hold"), agent("b")]}
    )
    async with client.session.post(RUN, json={"message": "hello"}, headers=STREAM) as response:
        seen = await Stream(response).until("NodeCompleted")
        assert seen[-1].data["data"]["output"]["node"] == "b"
        workshop.held.let_go.set()


async def test_a_node_that_fails_fails_its_run_and_is_named(workshop: Workshop) -> None:
    client = await workshop.open(sequence(function("a", "fail"), function("b")))
    answer = await run(client)
    assert (answer.status, answer.body["code"]) == (500, "node_failed")
    assert answer.body["detail"] == "node a: function fail failed: ValueError: not today"
    assert [call.node for call in workshop.calls] == ["a"]


async def test_an_agent_that_fails_fails_the_workflow_with_its_own_error(workshop: Workshop) -> None:
    client = await workshop.open(sequence(agent("a", "failing")))
    answer = await run(client)
    assert (answer.status, answer.body["code"]) == (422, "provider_rejected")
    assert answer.body["detail"].startswith("node a: agent failing ended without an answer: ")


async def test_a_function_that_may_pass_is_tried_again_in_the_same_super_step(workshop: Workshop) -> None:
    """WF-5: attempts, waits, one super-step, one call key."""
    client = await workshop.open(sequence(function("a", "flaky")))
    answer = await run(client)
    assert answer.body["answer"] == "third time"
    events = await client.events(answer.body["id"])
    assert [one["retry_in_ms"] for one in of_type(events, "NodeFailed")] == [1, 2]
    assert [one["attempt"] for one in of_type(events, "NodeInvoked")] == [1, 2, 3]
    assert len(of_type(events, "SuperStepStarted")) == 1
    assert len({call.call_key for call in workshop.calls}) == 1


async def test_a_failure_that_will_not_pass_is_not_tried_again(workshop: Workshop) -> None:
    """WF-5"""
    client = await workshop.open(sequence(function("a", "broken")))
    answer = await run(client)
    [failed] = of_type(await client.events(answer.body["run"]["id"]), "NodeFailed")
    assert (len(workshop.calls), failed["retry_in_ms"]) == (1, None)


async def test_a_workflow_that_takes_too_long_ends_and_names_the_setting(workshop: Workshop) -> None:
    """WF-1"""
    client = await workshop.open(sequence(function("a", "hold")), workflows={"run_timeout": 0.2})
    answer = await run(client)
    assert (answer.status, answer.body["code"]) == (504, "deadline_exceeded")
    assert "workflows.run_timeout" in answer.body["detail"]


async def test_a_workflow_with_too_many_super_steps_fails(workshop: Workshop) -> None:
    """WF-1"""
    client = await workshop.open(sequence(function("a"), function("b")), workflows={"max_super_steps": 1})
    answer = await run(client)
    assert (answer.status, answer.body["code"]) == (429, "workflow_steps_exceeded")
    assert "workflows.max_super_steps" in answer.body["detail"]


async def test_without_checkpoints_a_workflow_that_needs_a_person_fails_and_says_why(
    workshop: Workshop,
) -> None:
    """WF-2"""
    client = await workshop.open(
        sequence(function("a"), person("b")), workflows={"enable_checkpointing": False}
    )
    answer = await run(client)
    assert (answer.status, answer.body["code"]) == (422, "checkpointing_disabled")
    assert "workflows.enable_checkpointing" in answer.body["detail"]


async def test_cancelling_a_workflow_cancels_its_agents_first(workshop: Workshop) -> None:
    """CANCEL-3"""
    client = await workshop.open(sequence(agent("a", "gated")))
    async with client.session.post(RUN, json={"message": "hello"}, headers=STREAM) as response:
        stream = Stream(response)
        await workshop.held.reached.wait()
        assert (await client.post(f"/tracon/api/runs/{stream.run_id}/cancel")).status == 202
        last = (await stream.rest())[-1]
    assert (last.event, last.data["data"]["descendants"]) == ("RunCancelled", 1)


async def test_a_function_that_is_cancelled_is_on_record_as_stopped(workshop: Workshop) -> None:
    """CANCEL-3"""
    client = await workshop.open(sequence(function("a", "hold")))
    async with client.session.post(RUN, json={"message": "hello"}, headers=STREAM) as response:
        stream = Stream(response)
        await workshop.held.reached.wait()
        await client.post(f"/tracon/api/runs/{stream.run_id}/cancel")
        seen = [frame.event for frame in await stream.rest()]
    assert seen[-3:] == ["RunCancelRequested", "NodeFailed", "RunCancelled"]


async def test_what_is_not_there_is_not_found(workshop: Workshop) -> None:
    """HTTP-2"""
    client = await workshop.open(sequence(agent("a")))
    answers = [
        await client.post("/tracon/api/workflows/none/run", {"message": "x"}),
        await client.get("/tracon/api/workflows/none"),
        await client.get("/tracon/api/workflows/none/graph"),
    ]
    assert {(answer.status, answer.body["code"]) for answer in answers} == {(404, "workflow_not_found")}


async def test_workflows_are_listed_and_drawn(workshop: Workshop) -> None:
    client = await workshop.open(sequence(agent("a"), person("b", 'Really "good"?')))
    listed = (await client.get("/tracon/api/workflows")).body["workflows"]
    assert [(one["name"], one["version"]) for one in listed] == [("w", 0)]
    assert listed[0] == (await client.get("/tracon/api/workflows/w")).body
    graph = (await client.get("/tracon/api/workflows/w/graph")).body
    assert [(edge["source"], edge["target"]) for edge in graph["edges"]] == [
        ("start", "n1"),
        ("n1", "n2"),
        ("n2", "end"),
    ]
    drawn = await client.request("GET", "/tracon/api/workflows/w/graph?format=mermaid")
    assert drawn.body.decode().splitlines() == [
        "flowchart TD",
        '    start(["start"])',
        '    n1["a<br/>agent: echo"]',
        '    n2[/"b<br/>person: Really &quot;good&quot;?"/]',
        '    end_(["end"])',
        "    start --> n1",
        "    n1 --> n2",
        "    n2 --> end_",
    ]
    by_accept = await client.get("/tracon/api/workflows/w/graph", Accept="text/vnd.mermaid")
    assert by_accept.body == drawn.body


async def test_agents_hand_the_word_on_and_are_told_how(workshop: Workshop) -> None:
    """WF-1: the last line of an answer decides."""
    client = await workshop.open(
        {"name": "w", "kind": "handoff", "nodes": [agent("desk", "desk"), agent("expert", "yes")]}
    )
    answer = await run(client)
    assert answer.body["answer"] == "yes"
    events = await client.events(answer.body["id"])
    assert [one["output"].get("handoff_to") for one in of_type(events, "NodeCompleted")] == ["expert", None]
    [desk, expert] = of_type(events, "ChildRunStarted")
    told = (await client.get(f"/tracon/api/runs/{desk['run_id']}/input")).body["messages"]
    assert "HANDOFF: and the name. There are: expert." in told[0]["content"]
    heard = (await client.get(f"/tracon/api/runs/{expert['run_id']}/input")).body["messages"]
    assert heard[1]["content"] == "hello\n\ndesk: Hard."


async def test_agents_that_hand_over_in_circles_end_at_the_bound(workshop: Workshop) -> None:
    """WF-1"""
    circle = [function("a", "to_b"), function("b", "to_a")]
    client = await workshop.open(
        {"name": "w", "kind": "handoff", "nodes": circle, "max_iterations": 5}, functions=(to_a, to_b)
    )
    answer = await run(client)
    assert (answer.status, answer.body["code"]) == (429, "handoff_limit_exceeded")
    assert len(of_type(await client.events(answer.body["run"]["id"]), "NodeCompleted")) == 5


async def test_a_group_chat_ends_when_somebody_says_so(workshop: Workshop) -> None:
    """WF-1"""
    client = await workshop.open(
        {"name": "w", "kind": "group_chat", "nodes": [agent("a", "yes"), function("b", "that_is_all")]},
        functions=(that_is_all,),
    )
    answer = await run(client)
    assert answer.body["answer"] == "All is said."


@workflow_function
def to_a(text: str) -> Handoff:
    return Handoff("a")


@workflow_function
def to_b(text: str) -> Handoff:
    return Handoff("b")


@workflow_function
def that_is_all(text: str) -> Done:
    return Done("All is said.")


async def test_the_tree_of_a_workflow_has_its_agents(workshop: Workshop) -> None:
    client = await workshop.open(sequence(agent("a"), agent("b", "yes")))
    run_id = (await run(client)).body["id"]
    await client.views_show("runs")
    tree = (await client.get(f"/tracon/api/runs/{run_id}/tree")).body
    assert [(one["depth"], one["agent"]) for one in tree["runs"]] == [(0, "w"), (1, "echo"), (1, "yes")]


async def test_whoever_hangs_up_ends_the_workflow_where_the_setting_says_so(workshop: Workshop) -> None:
    definition = sequence(function("a", "hold"))
    client = await workshop.open(definition, server={"port": 0, "on_disconnect": "cancel"})
    async with client.session.post(RUN, json={"message": "x"}, headers=STREAM) as response:
        stream = Stream(response)
        await stream.until("NodeInvoked")
        run_id = stream.run_id
    async with client.watch(run_id) as watching:
        assert (await watching.rest())[-1].event == "RunCancelled"


async def test_what_can_be_asked_of_any_run_can_be_asked_of_a_workflows(workshop: Workshop) -> None:
    client = await workshop.open(sequence(agent("a"), function("b")))
    one, other = [(await run(client)).body["id"] for _ in range(2)]
    runs = f"/tracon/api/runs/{one}"
    for path in ("", "/input", "/tools", "/events", "/tree", f"/compare/{other}"):
        assert (await client.get(runs + path)).status == 200, path
    replayed = await client.post(f"{runs}/replay")
    assert (replayed.status, replayed.body["code"]) == (400, "not_replayable")
    assert (await client.post(f"{runs}/cancel")).status == 409
    assert (await client.get(f"/tracon/v1/responses/{one}")).status == 404
    await client.views_show("runs")
    listed = (await client.get("/tracon/api/runs?agent=w")).body["runs"]
    assert [(record["kind"], record["status"]) for record in listed] == [("workflow", "Completed")] * 2
    await client.views_show("statistics")
    assert (await client.get("/tracon/api/stats")).status == 200


async def test_a_node_is_never_finished_in_a_super_step_that_is_not(workshop: Workshop) -> None:
    """WF-2: the output, the end of the super-step and the next node's beginning are one append."""
    client = await workshop.open(sequence(function("a"), agent("b"), person("c")))
    events = await client.events((await run(client)).body["id"])
    appends = [[event["type"] for event in of_one] for _, of_one in groupby(events, lambda one: one["at"])]
    over = ["NodeCompleted", "SuperStepCompleted", "SuperStepStarted", "NodeInvoked"]
    assert appends == [
        ["RunCreated", "WorkflowOpened"],
        ["RunStarted", "SuperStepStarted", "NodeInvoked"],
        over,
        ["ChildRunStarted"],
        over,
        ["InputRequested", "SuperStepCompleted", "RunAwaitingInput"],
    ]
