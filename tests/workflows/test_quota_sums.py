"""Quota counters are the sums of what is in the log, to the last token (BUDGET-6, BUDGET-8)."""

import asyncio
from decimal import Decimal

from domain.budget import Charge, charge_of
from domain.events import RunCreated
from tests.http.client import Client
from tests.jobs.working import within
from tests.workflows.conftest import Workshop, agent, function, person, sequence
from tests.workflows.test_budgets import FUNCTIONS
from tests.workflows.test_going_on import respond, resume
from tests.workflows.test_running import run

QUOTAS = {
    metric: {"metric": metric, "period": "month", "limit": "1000000"} for metric in ("runs", "tokens", "cost")
}


async def in_the_log(client: Client) -> dict[str, Decimal]:
    """What all runs have spent, as their own events say."""
    runs, spent, position = 0, Charge(), 0
    while events := (await client.host.services.log.read_page(position, 500)).events:
        runs += sum(isinstance(one.event, RunCreated) for one in events)
        spent = sum((charge_of(one.event) for one in events), spent)
        position = events[-1].position
    return {"runs": Decimal(runs), "tokens": Decimal(spent.tokens), "cost": spent.cost}


async def counted(client: Client) -> dict[str, Decimal]:
    """What the tenant's quotas say that it has used."""
    answer = await client.get("/tracon/api/quotas")
    return {one["name"]: Decimal(one["used"]) for one in answer.body["quotas"]}


async def spend(workshop: Workshop, client: Client) -> None:
    """In every way that there is: answered, failed, cancelled, gone on from, below others, and reported."""
    waits = await run(client)
    await respond(client, waits.body["id"], "yes")
    failed = await client.post("/tracon/api/workflows/fails/run", {"message": "hello"})
    await resume(client, failed.body["run"]["id"])
    async with client.start("paying") as stream:
        await workshop.held.reached.wait()
        assert (await client.post(f"/tracon/api/runs/{stream.run_id}/cancel")).status == 202
        await stream.rest()
    await asyncio.gather(*(client.run("echo", "word " * number) for number in range(1, 9)))


async def test_quotas_count_what_is_in_the_log_and_nothing_else(workshop: Workshop) -> None:
    """BUDGET-6, BUDGET-8"""
    spends = [agent("a"), function("b", "pay"), function("c", "pay_in_francs")]
    client = await workshop.open(
        sequence(*spends, person("ok"), agent("d")),
        sequence(agent("a"), function("b", "pay_and_fail"), name="fails"),
        functions=FUNCTIONS,
        quotas=QUOTAS,
    )
    await spend(workshop, client)
    async with within():
        while await counted(client) != await in_the_log(client):
            await asyncio.sleep(0.02)
    sums = await counted(client)
    assert sums["runs"] == 16
    assert sums["cost"] > 7 * Decimal("0.75"), "what was reported, and what the models cost"
