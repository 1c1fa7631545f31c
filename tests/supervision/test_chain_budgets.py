"""A run that goes on from others starts from what those have spent (BUDGET-7)."""

from decimal import Decimal

import pytest

from app.identity import new_run_id
from app.main import Host
from app.supervision.chain_reading import spent_before as read_spent
from domain import events as e
from domain.budget import Spent
from domain.evolve import fold
from domain.failure import ErrorClass
from domain.ids import DEFAULT_TENANT, RunId
from domain.messages import UserMessage
from domain.queueing import QueueSpec
from tests.hosts import OpenHost, follow, kinds, only, scripted, start
from tests.supervision.crashing import CONTINUING, close_orphan, die, silent, successor
from tests.supervision.graphs import agent, asks
from tests.supervision.orphanage import append

SPENDS = "usage = { input_tokens = 50 }"
GONE = e.RunFailed(error="x", error_type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)


def tables(model: str, kind: str, *behaviours: str) -> str:
    return "".join(f"[[providers.script.models.{model}.{kind}]]\n{one}\n" for one in behaviours)


def tree(limits: str, *script: str) -> str:
    """A lead that asks its helper and then answers; its model begins with this script."""
    more = f"{CONTINUING.format(attempts=2)}\n[agent_graph]\n{limits}\n"
    models = (
        tables("lead", "script", *script)
        + tables("lead", "default", f"{asks('helper')}\n{SPENDS}", f"text = 'done'\n{SPENDS}")
        + tables("helper", "default", f"text = 'yes'\n{SPENDS}")
    )
    return scripted(models, agent("lead", agents=("helper",)) + agent("helper"), more)


async def continued(host_of: OpenHost, limits: str) -> tuple[Host, RunId]:
    """The host and the run that go on, within these limits, after 100 tokens and one child were spent."""
    host = await host_of(tree("", f"{asks('helper')}\n{SPENDS}", "silent = true"))
    other = await host_of(tree(limits))
    run_id = await start(host, "lead", session_id="s")
    await silent(host, run_id, 1)
    await die(host)
    await close_orphan(other, run_id)
    return other, await successor(other, run_id)


async def test_a_continuation_does_not_get_the_whole_budget_again(host_of: OpenHost) -> None:
    """BUDGET-7: what the interrupted run and its child have spent is gone."""
    host, run_id = await continued(host_of, "max_total_tokens = 150")
    seen = await follow(host, run_id)
    [failed] = only(seen, e.RunFailed)
    assert failed.error_type == "run_budget_exceeded"
    assert "has spent 150 of 150 tokens" in failed.error
    assert len(only(seen, e.ModelReplied)) == 1


async def test_a_continuation_with_nothing_left_makes_no_call(host_of: OpenHost) -> None:
    """BUDGET-7: nothing left is nothing."""
    host, run_id = await continued(host_of, "max_total_tokens = 100")
    assert kinds(await follow(host, run_id)) == ["RunCreated", "RunStarted", "RunFailed"]


async def test_children_of_the_runs_before_count(host_of: OpenHost) -> None:
    """BUDGET-7: the child that was started before is one of those that may be started."""
    host, run_id = await continued(host_of, "max_total_runs = 5")
    assert kinds(await follow(host, run_id))[-1] == "RunCompleted"
    spent = await spent_before(host, run_id)
    assert (spent.runs, spent.charge.tokens, spent.charge.cost) == (1, 100, Decimal(0))
    assert spent.executing_s > 0


async def spent_before(host: Host, run_id: RunId) -> Spent:
    run = fold(run_id, (one.event for one in await host.services.runs.load(DEFAULT_TENANT, run_id)))
    spent = await read_spent(host.services.log, run)
    assert isinstance(spent, Spent)
    return spent


async def a_chain_of(host: Host, runs: int, before: RunId | None = None) -> RunId | None:
    """Orphans, each of which goes on from the one before it; the last one's id."""
    for _ in range(runs):
        run_id = new_run_id()
        await append(host.services.log, run_id, asked(before), GONE)
        before = run_id
    return before


def asked(before: RunId | None, queue: QueueSpec | None = None) -> e.RunCreated:
    return e.RunCreated(
        tenant=DEFAULT_TENANT,
        kind=e.RunKind.AGENT,
        agent="helper",
        input=(UserMessage(content="hello"),),
        continued_from_run_id=before,
        queue=queue,
    )


async def begun_after(host: Host, before: RunId | None) -> list[e.Recorded[e.Event]]:
    """A run that goes on from that one, taken by a worker."""
    run_id = new_run_id()
    await append(host.services.log, run_id, asked(before, QueueSpec()))
    await host.services.runs.take(run_id)
    return await follow(host, run_id)


@pytest.mark.parametrize(("runs", "error"), [(127, None), (128, "run_chain_too_long")])
async def test_a_chain_of_129_runs_fails_before_its_first_step(
    host_of: OpenHost, runs: int, error: str | None
) -> None:
    """BUDGET-7"""
    host = await host_of(tree(""), worker=False)
    seen = await begun_after(host, await a_chain_of(host, runs))
    assert [one.error_type for one in only(seen, e.RunFailed)] == ([] if error is None else [error])
    assert len(only(seen, e.ModelCallStarted)) == (1 if error is None else 0)


async def test_a_chain_that_cannot_be_read_is_not_taken_for_a_new_one(host_of: OpenHost) -> None:
    """BUDGET-7: not a budget of zero spent, but no step at all."""
    host = await host_of(tree(""), worker=False)
    seen = await begun_after(host, await a_chain_of(host, 2, before=new_run_id()))
    [failed] = only(seen, e.RunFailed)
    assert (failed.error_type, failed.error_class) == ("run_chain_unreadable", ErrorClass.INFRASTRUCTURE)
    assert "ModelCallStarted" not in kinds(seen)
