"""Every row of the budget table: a run over HTTP that comes up against a limit of its tree (BUDGET)."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

import pytest
from aiohttp import ClientSession

from app.tools.tool import Tool
from domain.events import RunFailed
from domain.ids import RunId
from tests.hosts import OpenHost, follow, kinds, only
from tests.http.approving import opened
from tests.http.client import Answer, Client
from tests.supervision.graphs import agent, asks, graph
from tracon import ToolContext, tool

OpenClient = Callable[..., Awaitable[Client]]

PRICE = 'input_per_million = "10000"\noutput_per_million = "0"\n'
SPENDS = "usage = { input_tokens = 50 }"
"""With that price, 50 tokens cost 0.5."""
WORKS = f"tool_call = {{ name = 'work' }}\n{SPENDS}"
TWICE = f"tool_calls = [{{ name = 'work' }}, {{ name = 'work' }}]\n{SPENDS}"
DONE = f"text = 'done'\n{SPENDS}"


@pytest.fixture
async def client_of(host_of: OpenHost) -> AsyncIterator[OpenClient]:
    """Open a host with these limits, and a client that speaks HTTP to it."""
    async with AsyncExitStack() as stack:

        async def client(limits: str, toml: str, *tools: Tool) -> Client:
            host = await host_of(f"[agent_graph]\n{limits}\n{toml}", tools=tools)
            return Client(host, await stack.enter_async_context(ClientSession(base_url=host.url)))

        yield client


def spender(*replies: str, price: str = PRICE, agents: tuple[str, ...] = (), more: str = "") -> str:
    """An agent `a` that may call the tool `work`, on a model that says this, reply by reply."""
    told = "".join(f"[[providers.script.models.a.default]]\n{reply}\n" for reply in replies)
    model = f'[providers.script]\ntype = "scripted"\n[providers.script.models.a]\n{price}{told}'
    return f"{more}\n{model}\n{agent('a', tools=('work',), agents=agents)}"


class Work:
    """A tool that counts how often it ran, and says what it spends."""

    def __init__(self, amount: str | None = None, currency: str = "USD") -> None:
        self.times = 0
        self._amount = amount
        self._currency = currency

    @property
    def tool(self) -> Tool:
        @tool(name="work", effect="write")
        def work(context: ToolContext) -> str:
            """Work."""
            self.times += 1
            if self._amount is not None:
                context.report_usage(self._amount, self._currency, "render")
            return "worked"

        return work


async def failed_for(client: Client, setting: str, answer: Answer) -> list[dict[str, Any]]:
    """The events of a run that ended because of this limit, which its answer, its record and its end name."""
    assert answer.status == 429
    assert answer.body["type"].endswith(":run_budget_exceeded")
    shown = (await client.get(f"/tracon/api/runs/{answer.body['run']['id']}")).body
    events = await client.events(shown["id"])
    end = events[-1]
    assert (shown["status"], end["type"]) == ("Failed", "RunFailed")
    for told in (end["data"], shown, answer.body["run"]):
        assert told["error_type"] == "run_budget_exceeded"
        assert told["error_class"] == "QuotaExceeded"
        assert f"agent_graph.{setting} raises the limit" in told["error"]
    limit = setting.removeprefix("max_")
    assert client.count("tracon_budget_refusals_total", limit=limit) >= 1
    return events


def names(events: list[dict[str, Any]]) -> list[str]:
    return [one["type"] for one in events]


TURNS = [
    ("max_total_tokens", "max_total_tokens = 50", PRICE, "has spent 50 of 50 tokens"),
    (
        "max_total_cost",
        'max_total_cost = "0.5"\nmax_total_tokens = 0',
        PRICE,
        "a cost of 0.5, and 0.5 is allowed",
    ),
    ("max_total_tokens", 'max_total_cost = "0.1"\nmax_total_tokens = 50', "", "has spent 50 of 50 tokens"),
]


@pytest.mark.parametrize(("setting", "limits", "price", "told"), TURNS, ids=["tokens", "cost", "unpriced"])
async def test_a_spent_tree_gets_no_further_model_turn(
    client_of: OpenClient, setting: str, limits: str, price: str, told: str
) -> None:
    """BUDGET-2: checked between two turns; an unknown price leaves it to the token limit."""
    client = await client_of(limits, spender(f"length = 'half of'\n{SPENDS}", DONE, price=price), Work().tool)
    answer = await client.run("a")
    events = await failed_for(client, setting, answer)
    assert told in events[-1]["data"]["error"]
    assert names(events).count("ModelReplied") == 1, "the reply that did it is kept, and no call follows"
    assert "ModelCallFailed" not in names(events), "no link failed, so no circuit counts it"


async def test_a_tree_whose_time_is_over_gets_no_further_model_turn(client_of: OpenClient) -> None:
    """BUDGET-2: what is under way is not interrupted; nothing begins after it."""
    late = f"length = 'half of'\nfirst_delay = 0.4\n{SPENDS}"
    client = await client_of("max_duration = '200ms'", spender(late, DONE), Work().tool)
    events = await failed_for(client, "max_duration", await client.run("a"))
    assert names(events).count("ModelReplied") == 1, (
        "a call under way when the time is over is not interrupted"
    )


CALLS = [
    ("max_total_tokens", "max_total_tokens = 50"),
    ("max_total_cost", 'max_total_cost = "0.5"\nmax_total_tokens = 0'),
    ("max_duration", "max_duration = '200ms'"),
]


@pytest.mark.parametrize(("setting", "limits"), CALLS, ids=["tokens", "cost", "duration"])
async def test_a_spent_tree_begins_no_tool_call(client_of: OpenClient, setting: str, limits: str) -> None:
    """BUDGET-4: the call does not start, its result says why, and the run ends at its next turn."""
    work = Work()
    late = f"tool_call = {{ name = 'work' }}\ntext = 'I will'\nfirst_delay = 0.4\n{SPENDS}"
    client = await client_of(limits, spender(late, DONE), work.tool)
    events = await failed_for(client, setting, await client.run("a"))
    assert work.times == 0
    assert "ToolInvoking" not in names(events)
    [refused] = [one["data"] for one in events if one["type"] == "ToolFailed"]
    assert refused["failure"] == "refused"
    assert f"agent_graph.{setting} raises the limit. The tool call did not start." in refused["output"]


async def test_a_budget_is_looked_at_before_anything_else_of_a_call(client_of: OpenClient) -> None:
    """BUDGET-4: a call that names no tool at all is refused for the budget, too."""
    invented = f"tool_call = {{ name = 'invented' }}\n{SPENDS}"
    client = await client_of("max_total_tokens = 50", spender(invented, DONE), Work().tool)
    events = await failed_for(client, "max_total_tokens", await client.run("a"))
    assert [one["data"]["failure"] for one in events if one["type"] == "ToolFailed"] == ["refused"]


async def test_what_a_tool_reports_counts_before_the_next_call_of_the_same_reply(
    client_of: OpenClient,
) -> None:
    """BUDGET-3, BUDGET-4: the call that crosses the ceiling is the last one that starts."""
    work = Work(amount="2")
    client = await client_of('max_total_cost = "1"', spender(TWICE, DONE), work.tool)
    events = await failed_for(client, "max_total_cost", await client.run("a"))
    assert work.times == 1
    [reported] = [one["data"] for one in events if one["type"] == "UsageReported"]
    assert (reported["kind"], reported["amount"], reported["counted"]) == ("render", "2", True)
    assert "a cost of 2.5, and 1 is allowed" in events[-1]["data"]["error"]


async def test_concurrent_calls_start_together_or_not_at_all(client_of: OpenClient) -> None:
    """BUDGET-4: with concurrent tool calls none has reported when the others start."""
    work = Work(amount="2")
    together = "[tool_loop]\nallow_concurrent_tool_calls = true"
    client = await client_of('max_total_cost = "1"', spender(TWICE, DONE, more=together), work.tool)
    events = await failed_for(client, "max_total_cost", await client.run("a"))
    assert work.times == 2
    assert "ToolFailed" not in names(events)


@pytest.mark.parametrize(("amount", "currency"), [("2", "EUR"), (None, "USD")])
async def test_what_cannot_be_added_does_not_count(
    client_of: OpenClient, amount: str | None, currency: str
) -> None:
    """BUDGET-3: another currency, or no amount, is unknown to the budget."""

    @tool(name="work", effect="write")
    def work(context: ToolContext) -> str:
        """Work."""
        context.report_usage(amount, currency, "render")
        return "worked"

    client = await client_of('max_total_cost = "1.5"', spender(WORKS, DONE), work)
    answer = await client.run("a")
    assert answer.body["status"] == "Completed"
    events = await client.events(answer.body["id"])
    assert [one["data"]["counted"] for one in events if one["type"] == "UsageReported"] == [False]


LIFTED = {
    "zero": 'max_total_tokens = 0\nmax_total_cost = "0"\nmax_duration = 0',
    "negative": 'max_total_tokens = -1\nmax_total_cost = "-0.5"\nmax_duration = -1',
    "absent": "",
}


@pytest.mark.parametrize("limits", LIFTED.values(), ids=LIFTED)
async def test_zero_negative_and_absent_are_no_limit(client_of: OpenClient, limits: str) -> None:
    """BUDGET-1."""
    work = Work(amount="2")
    client = await client_of(limits, spender(WORKS, DONE), work.tool)
    assert (await client.run("a")).body["status"] == "Completed"
    assert work.times == 1


CHILDREN = [
    ("max_depth", "max_depth = 0"),
    ("max_depth", "max_depth = -5"),
    ("max_total_runs", "max_total_runs = 1"),
]


@pytest.mark.parametrize(("setting", "limits"), CHILDREN, ids=["depth", "negative-depth", "runs"])
async def test_a_child_that_may_not_start_is_a_result_that_the_model_reads(
    client_of: OpenClient, setting: str, limits: str
) -> None:
    """BUDGET-2: depth and number stop a new child only. The run that wanted it goes on."""
    toml = graph(
        agent("lead", agents=("helper",)) + agent("helper"),
        lead=f"{asks('helper')}\n{asks('helper')}\nlast_tool_result = 'It says: {{result}}'",
        helper="text = 'nothing there'",
    )
    client = await client_of(limits, toml)
    answer = (await client.run("lead")).body
    assert answer["status"] == "Completed"
    assert f"agent_graph.{setting} raises the limit. The agent did not start." in answer["answer"]
    events = await client.events(answer["id"])
    refused = [one["data"] for one in events if one["type"] == "ToolFailed"]
    assert {one["failure"] for one in refused} == {"refused"}
    started = [one for one in events if one["type"] == "ChildRunStarted"]
    assert len(started) + len(refused) == 2
    assert client.count("tracon_budget_refusals_total", limit=setting.removeprefix("max_")) == len(refused)


@pytest.mark.parametrize("limits", ["max_total_runs = 0", ""], ids=["zero", "absent"])
async def test_the_number_of_children_may_be_without_a_limit(client_of: OpenClient, limits: str) -> None:
    """BUDGET-1: zero or less removes the limit; 25 hold where nothing is said."""
    many = ", ".join(['{ name = "helper", arguments = { message = "look" } }'] * 26)
    toml = graph(
        agent("lead", agents=("helper",)) + agent("helper"),
        lead=f"tool_calls = [{many}]\ntext = 'done'",
        helper="text = 'nothing there'",
    )
    client = await client_of(limits, toml)
    answer = (await client.run("lead")).body
    refused = [one for one in await client.events(answer["id"]) if one["type"] == "ToolFailed"]
    assert len(refused) == (0 if limits else 1)


async def test_a_tree_has_one_budget(client_of: OpenClient) -> None:
    """BUDGET-1: what a child spends is gone for its parent, and the other way round."""
    spends = "usage = {{ input_tokens = {0} }}"
    toml = (
        '[providers.script]\ntype = "scripted"\n'
        f"[[providers.script.models.lead.default]]\n{asks('helper')}\n{spends.format(40)}\n"
        f"[[providers.script.models.lead.default]]\ntext = 'done'\n"
        f"[[providers.script.models.helper.default]]\ntext = 'nothing there'\n{spends.format(60)}\n"
        + agent("lead", agents=("helper",))
        + agent("helper")
    )
    client = await client_of("max_total_tokens = 100", toml)
    events = await failed_for(client, "max_total_tokens", await client.run("lead"))
    assert "has spent 100 of 100 tokens" in events[-1]["data"]["error"]
    [returned] = [one["data"] for one in events if one["type"] == "ToolReturned"]
    assert returned["output"] == "nothing there", "the child was within the budget"


async def test_a_call_that_the_budget_refuses_is_put_before_nobody(client_of: OpenClient) -> None:
    """BUDGET-4: looked at before anybody is asked to approve of it."""

    @tool(name="work", effect="write", requires_approval=True)
    def work() -> str:
        """Work."""
        return "worked"

    client = await client_of("max_total_tokens = 50", spender(WORKS, DONE), work)
    events = await failed_for(client, "max_total_tokens", await client.run("a"))
    assert [one["data"]["failure"] for one in events if one["type"] == "ToolFailed"] == ["refused"]


async def test_a_run_that_goes_on_with_an_approval_starts_from_what_was_spent(client_of: OpenClient) -> None:
    """BUDGET-7: the call that was approved of is made, and the model gets no whole budget for it."""

    @tool(name="work", effect="write", requires_approval=True)
    def work() -> str:
        """Work."""
        return "worked"

    replies = (WORKS, f"length = 'half of'\n{SPENDS}", DONE)
    client = await client_of("max_total_tokens = 90", spender(*replies), work)
    waits = await client.run("a")
    assert waits.body["status"] == "AwaitingApproval"
    run_id = await opened(client, RunId(UUID(waits.body["id"])))
    events = await follow(client.host, run_id)
    assert "ToolReturned" in kinds(events)
    [failed] = only(events, RunFailed)
    shown = (await client.get(f"/tracon/api/runs/{run_id}")).body
    assert (shown["error_type"], shown["error_class"]) == ("run_budget_exceeded", "QuotaExceeded")
    assert "has spent 100 of 90 tokens; agent_graph.max_total_tokens raises the limit" in failed.error


async def test_no_judge_is_called_in_a_spent_tree(client_of: OpenClient) -> None:
    """BUDGET-2: a call beside the agent's own is a model call like any other."""
    judged = "loop = { criterion = 'It is short.', judge = { provider = 'script', model = 'a' } }\n"
    toml = spender(DONE).replace("[agents.a]\n", f"[agents.a]\n{judged}")
    client = await client_of("max_total_tokens = 50", toml, Work().tool)
    events = await failed_for(client, "max_total_tokens", await client.run("a"))
    assert "SideCallStarted" not in names(events)


async def test_a_client_of_the_openai_api_is_told_not_to_try_again(client_of: OpenClient) -> None:
    """A budget refusal is never retried: clients of that API try a 429 again by themselves."""
    client = await client_of(
        "max_total_tokens = 50", spender(f"length = 'half of'\n{SPENDS}", DONE), Work().tool
    )
    body = {"model": "a", "messages": [{"role": "user", "content": "hello"}]}
    answer = await client.post("/tracon/v1/chat/completions", body)
    assert (answer.status, answer.headers["X-Should-Retry"]) == (429, "false")
    assert "agent_graph.max_total_tokens raises the limit" in answer.body["error"]["message"]
