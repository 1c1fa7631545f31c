"""Agents that other agents call: runs below runs."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from app.main import Host
from app.settings.errors import SettingsError
from domain import events as e
from domain.evolve import fold
from domain.failure import ErrorClass, RunError
from domain.ids import DEFAULT_TENANT, RunId, run_stream, session_stream
from domain.messages import UserMessage
from domain.run import RunStatus
from tests.hosts import OpenHost, follow, kinds, only, start
from tests.supervision.graphs import agent, asks, asks_all, calls, graph
from tracon import ToolContext, tool

GONE = RunError(message="its host is gone", type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)
TOGETHER = "[tool_loop]\nallow_concurrent_tool_calls = true"
LEAD = f"{asks('helper')}\nlast_tool_result = 'It says: {{result}}'"
PAIR = graph(agent("lead", agents=("helper",)) + agent("helper"), lead=LEAD, helper="text = 'nothing there'")


async def child_of(host: Host, run_id: RunId) -> RunId:
    """The first run below this one, once it is there."""
    seen = await follow(host, run_id, e.ChildRunStarted)
    return only(seen, e.ChildRunStarted)[0].run_id


async def test_an_agent_answers_another_in_a_run_of_its_own(host_of: OpenHost) -> None:
    host = await host_of(PAIR)
    run_id = await start(host, "lead", session_id="s")
    seen = await follow(host, run_id)
    assert [one for one in kinds(seen) if not one.startswith("Model")] == [
        "RunCreated", "RunStarted", "ToolInvoking", "ChildRunStarted", "ToolReturned", "RunCompleted",
    ]  # fmt: skip
    assert only(seen, e.RunCompleted) == [e.RunCompleted(answer="It says: nothing there")]
    [noted] = only(seen, e.ChildRunStarted)
    [invoking] = only(seen, e.ToolInvoking)
    assert (noted.agent, noted.cause) == ("helper", invoking.call_id)
    created = only(await follow(host, noted.run_id), e.RunCreated)[0]
    assert created == e.RunCreated(
        tenant=DEFAULT_TENANT,
        kind=e.RunKind.AGENT,
        agent="helper",
        input=(UserMessage(content="look"),),
        session_id="s",
        root_run_id=run_id,
        parent_run_id=run_id,
        depth=1,
    )


async def test_a_child_takes_no_turn_in_its_roots_session(host_of: OpenHost) -> None:
    host = await host_of(PAIR)
    run_id = await start(host, "lead", session_id="s")
    await follow(host, run_id)
    recorded = await host.services.log.read_stream(session_stream(DEFAULT_TENANT, "s"))
    assert {one.event.run_id for one in recorded} == {run_id}  # type: ignore[attr-defined]


async def test_a_child_that_fails_is_a_result_that_the_model_reads(host_of: OpenHost) -> None:
    host = await host_of(
        graph(agent("lead", agents=("helper",)) + agent("helper"), lead=LEAD, helper="status = 400")
    )
    run_id = await start(host, "lead")
    seen = await follow(host, run_id)
    [failed] = only(seen, e.ToolFailed)
    assert failed.failure is e.ToolFailure.AGENT_FAILED
    assert failed.output.startswith("helper ended without an answer (provider_rejected): ")
    assert only(seen, e.RunCompleted) == [e.RunCompleted(answer=f"It says: {failed.output}")]


async def test_a_child_whose_actor_crashes_is_an_outcome_and_no_hang(host_of: OpenHost) -> None:
    @tool(effect="read")
    async def first(context: ToolContext) -> str:
        """Clean up more than is its own."""
        for task in asyncio.all_tasks():
            if task.get_name() == f"run {context.run_id}":
                task.cancel()
        await asyncio.Event().wait()
        return "never"

    settings = graph(
        agent("lead", agents=("helper",)) + agent("helper", tools=("first",)),
        lead=LEAD,
        helper=f"{calls('first')}\ntext = 'never'",
    )
    host = await host_of(settings, tools=(first,))
    seen = await follow(host, await start(host, "lead"))
    [failed] = only(seen, e.ToolFailed)
    assert failed.output.startswith("helper ended without an answer (internal_error): ")
    assert kinds(seen)[-1] == "RunCompleted"


async def test_a_child_that_somebody_else_closes_is_an_outcome_too(host_of: OpenHost) -> None:
    """EVENT-3: the child's actor loses its pen, and its parent hears what the stream says."""
    host = await host_of(
        graph(agent("lead", agents=("helper",)) + agent("helper"), lead=LEAD, helper="silent = true")
    )
    run_id = await start(host, "lead")
    child = await child_of(host, run_id)
    await follow(host, child, e.ModelCallStarted)
    await host.services.runs.close(child, GONE)
    host.services.runs.cut_off(child)
    [failed] = only(await follow(host, run_id), e.ToolFailed)
    assert failed.output == "helper ended without an answer (orphaned): its host is gone"


async def test_the_agents_parameters_are_arguments_of_the_call(host_of: OpenHost) -> None:
    parameters = "parameters = { tone = 'brief', limit = 3 }"
    settings = graph(
        agent("lead", agents=("helper",)) + agent("helper", more=parameters),
        lead=f"{asks('helper', tone='warm')}\ntext = 'done'",
        helper="text = 'yes'",
    )
    host = await host_of(settings)
    [spec] = host.bench.agents.specs(DEFAULT_TENANT, ["helper"])
    assert spec.parameters["properties"] == {
        "message": {"type": "string"},
        "tone": {"type": "string", "default": "brief"},
        "limit": {"type": "integer", "default": 3},
    }
    assert spec.parameters["required"] == ["message"]
    child = await child_of(host, await start(host, "lead"))
    assert only(await follow(host, child), e.RunCreated)[0].parameters == {"tone": "warm"}


@pytest.mark.parametrize("arguments", ["{}", '{ message = "m", colour = "red" }', '"not json"'])
async def test_a_call_that_does_not_fit_starts_no_child(host_of: OpenHost, arguments: str) -> None:
    call = f"tool_call = {{ name = 'helper', arguments = {arguments} }}"
    settings = graph(
        agent("lead", agents=("helper",)) + agent("helper"),
        lead=f"{call}\ntext = 'done'",
        helper="text = 'yes'",
    )
    host = await host_of(settings)
    seen = await follow(host, await start(host, "lead"))
    assert [one.failure for one in only(seen, e.ToolFailed)] == [e.ToolFailure.INVALID_ARGUMENTS]
    assert "ChildRunStarted" not in kinds(seen)
    assert kinds(seen)[-1] == "RunCompleted"


DEEP = graph(
    agent("top", agents=("middle",)) + agent("middle", agents=("leaf",)) + agent("leaf"),
    top=f"{asks('middle')}\ntext = 'done'",
    middle=f"{asks('leaf')}\ntext = 'done'",
    leaf="silent = true",
)


async def test_a_roots_cancel_reaches_all_below_it_leaves_first(host_of: OpenHost) -> None:
    """CANCEL-3: and the receipt says how many."""
    host = await host_of(DEEP)
    top = await start(host, "top")
    middle = await child_of(host, top)
    leaf = await child_of(host, middle)
    await follow(host, leaf, e.ModelCallStarted)
    await host.services.runs.cancel(DEFAULT_TENANT, top, "enough")
    ends = [(await follow(host, run_id))[-1] for run_id in (leaf, middle, top)]
    receipts = [one.event for one in ends]
    assert all(isinstance(one, e.RunCancelled) for one in receipts)
    assert [one.position for one in ends] == sorted(one.position for one in ends)
    assert [one.descendants for one in receipts if isinstance(one, e.RunCancelled)] == [0, 1, 2]
    last = receipts[-1]
    assert isinstance(last, e.RunCancelled)
    assert (last.reason, [one.tool for one in last.interrupted]) == ("enough", ["middle"])


async def test_a_childs_cancel_stays_with_it(host_of: OpenHost) -> None:
    """CANCEL-3."""
    host = await host_of(DEEP)
    top = await start(host, "top")
    middle = await child_of(host, top)
    leaf = await child_of(host, middle)
    await follow(host, leaf, e.ModelCallStarted)
    await host.services.runs.cancel(DEFAULT_TENANT, leaf, "not that one")
    [failed] = only(await follow(host, middle), e.ToolFailed)
    assert failed.failure is e.ToolFailure.AGENT_FAILED
    assert kinds(await follow(host, middle))[-1] == "RunCompleted"
    assert kinds(await follow(host, top))[-1] == "RunCompleted"
    assert kinds(await follow(host, leaf))[-1] == "RunCancelled"


async def test_two_hundred_children_are_cancelled_in_one_go(host_of: OpenHost) -> None:
    """CANCEL-3: one request, and nothing of the tree is left."""
    more = f"{TOGETHER}\n[agent_graph]\nmax_total_runs = 0\nmax_total_tokens = 0"
    settings = graph(
        agent("lead", agents=("helper",)) + agent("helper"),
        more,
        lead=asks_all("helper", *map(str, range(200))),
        helper="silent = true",
    )
    host = await host_of(settings)
    run_id = await start(host, "lead")
    started: list[RunId] = []
    async for batch in host.services.log.follow(run_stream(run_id), 0):
        started += [one.event.run_id for one in batch if isinstance(one.event, e.ChildRunStarted)]
        if len(started) == 200:
            break
    await host.services.runs.cancel(DEFAULT_TENANT, run_id)
    [receipt] = only(await follow(host, run_id), e.RunCancelled)
    assert (receipt.descendants, len(receipt.interrupted)) == (200, 200)
    recorded = await host.services.log.read_streams({run_stream(child): 0 for child in started})
    ended = [one for one in recorded if isinstance(one.event, e.RunCancelled)]
    assert len(ended) == 200


async def test_the_parents_deadline_ends_its_children_with_it(host_of: OpenHost) -> None:
    more = "[turn]\ntimeout = '2s'"
    settings = graph(
        agent("lead", agents=("helper",)) + agent("helper"), more, lead=LEAD, helper="silent = true"
    )
    host = await host_of(settings)
    run_id = await start(host, "lead")
    child = await child_of(host, run_id)
    assert only(await follow(host, run_id), e.RunFailed)[0].error_type == "deadline_exceeded"
    run = fold(child, (one.event for one in await host.services.runs.load(DEFAULT_TENANT, child)))
    assert run.status.ended


async def test_a_host_that_stops_leaves_the_whole_tree_to_reconciliation(host_of: OpenHost) -> None:
    """What was cut off is closed by those who find it; nothing says that somebody cancelled it."""
    async with AsyncExitStack() as stack:
        host = await host_of(DEEP, within=stack)
        top = await start(host, "top")
        middle = await child_of(host, top)
        leaf = await child_of(host, middle)
        await follow(host, leaf, e.ModelCallStarted)
        await host.roster.stop()
        for run_id in (top, middle, leaf):
            run = fold(run_id, (one.event for one in await host.services.runs.load(DEFAULT_TENANT, run_id)))
            assert run.status is RunStatus.RUNNING
            assert not run.cancel_requested


REFUSED = {
    "there is no agent 'helper'": agent("lead", agents=("helper",)),
    "names 'helper' twice": agent("lead", agents=("helper", "helper")) + agent("helper"),
    "no dots, and 64 characters": agent("lead", agents=("the.helper",)) + agent("'the.helper'"),
    "a parameter 'message'": agent("lead", agents=("helper",))
    + agent("helper", more="parameters = { message = 'hi' }"),
    "one of its tools too": agent("lead", agents=("helper",), tools=("helper",)) + agent("helper"),
}


@pytest.mark.parametrize("reason", REFUSED)
async def test_agents_that_cannot_be_called_are_refused_at_the_start(host_of: OpenHost, reason: str) -> None:
    @tool(name="helper", effect="read")
    def helper() -> str:
        """Help."""
        return "yes"

    tools = (helper,) if "tools" in reason else ()
    with pytest.raises(SettingsError, match=reason):
        await host_of(graph(REFUSED[reason]), tools=tools)


async def test_the_whole_tree_of_a_host_that_is_gone_is_closed_by_who_finds_it(host_of: OpenHost) -> None:
    """RECON-2, CONT-4: children have heartbeats of their own, and none of them is continued by itself."""
    more = (
        "[run_reconciliation]\nenabled = true\nheartbeat_interval = '200ms'\norphan_threshold = '1s'\n"
        "scan_interval = '200ms'\n[run_continuation]\nenabled = true\n"
    )
    other = await host_of(more + DEEP)
    async with AsyncExitStack() as stack:
        host = await host_of(more + DEEP, within=stack)
        top = await start(host, "top")
        middle = await child_of(host, top)
        leaf = await child_of(host, middle)
        await follow(host, leaf, e.ModelCallStarted)
    causes = []
    for run_id in (top, middle, leaf):
        seen = await follow(other, run_id, e.RunContinuationBlocked)
        assert only(seen, e.RunFailed)[0].error_type == "orphaned"
        causes += [one.cause.value for one in only(seen, e.RunContinuationBlocked)]
    assert causes == ["no_session", "child_run", "child_run"]


async def test_the_next_link_gets_the_answer_that_an_agent_gave_the_one_before(host_of: OpenHost) -> None:
    """CHAIN-6: one ledger for a turn, calls to agents included."""
    again = {
        "p1": "status = { status = 503, message = 'down' }",
        "p2": "last_tool_result = 'It says: {result}'",
    }
    providers = "".join(
        f'[providers.{name}]\ntype = "scripted"\n'
        f"[[providers.{name}.models.m.default]]\n{asks('helper')}\n"
        f"[[providers.{name}.models.m.default]]\n{then}\n"
        for name, then in again.items()
    )
    lead = (
        '[agents.lead]\nprovider = "p1"\nmodel = "m"\nagents = ["helper"]\nfallback_mode = "restart"\n'
        'fallbacks = [{ provider = "p2", model = "m" }]\n'
    )
    host = await host_of(graph(agent("helper") + lead, providers, helper="text = 'nothing there'"))
    seen = await follow(host, await start(host, "lead"))
    assert only(seen, e.RunCompleted)[0].answer == "It says: nothing there"
    assert [one.output for one in only(seen, e.ToolAnswered)] == ["nothing there"]
    assert len(only(seen, e.ChildRunStarted)) == 1
