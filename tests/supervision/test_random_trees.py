"""Trees of any shape, on a whole host: no limit is passed by more than the bound, and all is on record."""

import asyncio
from collections import Counter
from decimal import Decimal
from random import Random

import pytest

from app.main import Host
from domain import events as e
from domain.budget import Charge, charge_of
from domain.ids import DEFAULT_TENANT, RunId
from domain.messages import Usage
from domain.spent import children_of
from projections.read.statistics import read_statistics
from tests.hosts import OpenHost, follow, start
from tests.supervision.graphs import agent
from tracon import ToolContext, tool

AGENTS = 8
ROOTS = 6
MOST_TOKENS = 400
"""No step of these models spends more."""
PRICE = 'input_per_million = "1000"\noutput_per_million = "3000"\n'
History = list[e.Recorded[e.RunEvent]]


@tool(name="pay", effect="write")
def pay(context: ToolContext, amount: str) -> str:
    """Spend money."""
    context.report_usage(amount, "USD", "fee")
    return "paid"


class Shape:
    """Agents that call one another at random, in circles too, each on a model of its own."""

    def __init__(self, seed: int, expected_output: int) -> None:
        self._random = Random(seed)
        self.tokens = self._random.randrange(300, 4000)
        self.cost = Decimal(self._random.randrange(1, 40)) / 10
        together = self._random.choice(["true", "false"])
        self.toml = "\n".join(
            (
                f"[agent_graph]\nmax_total_tokens = {self.tokens}\nmax_total_cost = '{self.cost}'",
                "max_total_runs = 30\nmax_depth = 4",
                f"[tool_loop]\nallow_concurrent_tool_calls = {together}",
                '[providers.script]\ntype = "scripted"',
                *(self._model(number) for number in range(AGENTS)),
                *(self._agent(number, expected_output) for number in range(AGENTS)),
            )
        )

    def _agent(self, number: int, expected_output: int) -> str:
        others = tuple(f"a{other}" for other in range(AGENTS))
        options = f"options = {{ max_output_tokens = {expected_output} }}"
        return agent(f"a{number}", agents=others, tools=("pay",), more=options)

    def _model(self, number: int) -> str:
        price = PRICE if self._random.random() < 0.8 else ""
        replies = [self._reply(self._calls()) for _ in range(self._random.randrange(3))]
        replies.append(self._reply("text = 'enough'"))
        listed = "".join(f"[[providers.script.models.a{number}.default]]\n{reply}\n" for reply in replies)
        return f"[providers.script.models.a{number}]\n{price}{listed}"

    def _reply(self, does: str) -> str:
        spent = self._random.randrange(MOST_TOKENS // 2), self._random.randrange(MOST_TOKENS // 2)
        usage = f"usage = {{ input_tokens = {spent[0]}, output_tokens = {spent[1]} }}"
        text = "" if does.startswith("text") else "text = 'well'\n"
        return f"{text}{does}\nfirst_delay = {self._random.random() / 50:.4f}\n{usage}"

    def _calls(self) -> str:
        made = [self._call() for _ in range(self._random.randrange(1, 4))]
        return f"tool_calls = [{', '.join(made)}]"

    def _call(self) -> str:
        if self._random.random() < 0.25:
            amount = Decimal(self._random.randrange(100)) / 1000
            return f'{{ name = "pay", arguments = {{ amount = "{amount}" }} }}'
        return f'{{ name = "a{self._random.randrange(AGENTS)}", arguments = {{ message = "go on" }} }}'


async def tree_of(host: Host, root: RunId) -> list[History]:
    """The streams of all runs of a tree."""
    found, level = list[History](), [root]
    while level:
        histories = [await host.services.runs.load(DEFAULT_TENANT, run_id) for run_id in level]
        found += histories
        level = [child for history in histories for child in children_of(history)]
    return found


def steps_of(history: History) -> list[Charge]:
    return [charge_of(one.event) for one in history if isinstance(one.event, e.ModelReplied)]


def spent_in(histories: list[History]) -> Charge:
    return sum((charge_of(one.event) for history in histories for one in history), Charge())


def reported_in(histories: list[History]) -> Charge:
    events = [one.event for history in histories for one in history]
    return sum((charge_of(event) for event in events if isinstance(event, e.UsageReported)), Charge())


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("expected_output", [MOST_TOKENS, 1], ids=["never-too-low", "too-low"])
async def test_no_tree_passes_a_limit_by_more_than_what_was_in_flight(
    host_of: OpenHost, seed: int, expected_output: int
) -> None:
    """BUDGET-2, BUDGET-8: the bound holds, and the log, the trees and the statistics have the same sums."""
    shape = Shape(seed, expected_output)
    host = await host_of(shape.toml, tools=(pay,))
    roots = await asyncio.gather(*(start(host, f"a{number % AGENTS}") for number in range(ROOTS)))
    for root in roots:
        await follow(host, root)
    trees = [await tree_of(host, root) for root in roots]
    for tree in trees:
        check_limits(shape, tree, one_step=expected_output == MOST_TOKENS)
    await check_sums(host, [history for tree in trees for history in tree])


def check_limits(shape: Shape, tree: list[History], *, one_step: bool) -> None:
    """`one_step`: no estimate was too low, so what was in flight beside the last step is in the limit."""
    spent, steps = spent_in(tree), [steps_of(history) for history in tree]
    largest = [max((step.tokens for step in of_run), default=0) for of_run in steps]
    dearest = [max((step.cost for step in of_run), default=Decimal(0)) for of_run in steps]
    assert spent.tokens < shape.tokens + (max(largest) if one_step else sum(largest))
    # What tools have reported may all have come after the last step was admitted.
    assert spent.cost < shape.cost + sum(dearest, reported_in(tree).cost)
    assert len(tree) - 1 <= 30
    created = [history[0].event for history in tree]
    assert max(one.depth for one in created if isinstance(one, e.RunCreated)) <= 4
    assert all(isinstance(history[-1].event, e.RunEnd) for history in tree)


async def check_sums(host: Host, histories: list[History]) -> None:
    views, log = host.services.views, host.services.log
    for view in ("statistics", "runs"):
        await views.wait_for(view, await log.end_position(), timeout_s=20)
    statistics = await read_statistics(host.services.pool, DEFAULT_TENANT)
    replies = [one.event for of_run in histories for one in of_run if isinstance(one.event, e.ModelReplied)]
    assert sum((model.usage for model in statistics.by_model), Usage()) == sum(
        (reply.usage for reply in replies), Usage()
    )
    priced = [reply.cost for reply in replies if reply.cost is not None]
    assert sum(Decimal(model.costs.get("USD", "0")) for model in statistics.by_model) == sum(priced)
    reported = reported_in(histories).cost
    assert sum(Decimal(one.counted) for one in statistics.reported) == reported
    by_agent = Counter(reply.model for reply in replies)
    assert {model.model_id: model.calls for model in statistics.by_model if model.calls} == dict(by_agent)
    rows = await host.services.pool.fetch("SELECT sum(reported_cost) AS reported, count(*) AS runs FROM runs")
    assert (rows[0]["reported"], rows[0]["runs"]) == (reported, len(histories))
