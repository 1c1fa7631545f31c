"""What callers and operators see of failing providers: answers, health, metrics, statistics (BREAK, CONC)."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from decimal import Decimal
from typing import Any

import pytest
from aiohttp import ClientSession

from app.models.accounts import Account
from tests.hosts import OpenHost, chained
from tests.http.client import STREAM, Client, eventually
from tests.supervision.one_database import database as database
from tracon import CallFailure, FailureClass, classifier

OK = 'default = { text = "All well." }'
DOWN = 'default = { status = { status = 503, message = "down" } }'
OPEN_AT_ONCE = "[circuit_breaker]\nfailure_threshold = 1\nbreak_duration = 30"

Serve = Callable[..., Awaitable[Client]]


@pytest.fixture
async def serve(host_of: OpenHost) -> AsyncIterator[Serve]:
    """Open a host, and a client that speaks HTTP to it."""
    async with AsyncExitStack() as stack:

        async def served(*links: str, classifiers: tuple[Any, ...] = (), **settings: str) -> Client:
            host = await host_of(chained(*links, **settings), classifiers=classifiers)
            session = await stack.enter_async_context(ClientSession(base_url=host.url))
            return Client(host, session)

        yield served


async def circuits(client: Client) -> dict[str, str]:
    health = (await client.get("/tracon/api/models/health")).body
    return {provider["provider"]: provider["circuit"] for provider in health["providers"]}


async def shown(client: Client) -> dict[str, float]:
    """What the host's metrics endpoint shows, series by series."""
    text = (await client.get("/metrics")).body.decode()
    lines = (line.rpartition(" ") for line in text.splitlines() if not line.startswith("#"))
    return {series: float(value) for series, _, value in lines}


async def calls(client: Client, run_id: str) -> list[tuple[str, str]]:
    """The providers that were asked, and how each call ended."""
    ends = {"ModelReplied": "replied", "ModelCallFailed": "failed"}
    events = await client.events(run_id)
    return [
        (event["data"]["provider"], event["data"].get("failure", {}).get("kind", "replied"))
        for event in events
        if event["type"] in ends
    ]


async def spent(client: Client) -> defaultdict[str, Counter[str]]:
    """What statistics have of each provider by now."""
    await client.views_show("statistics")
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for one in (await client.get("/tracon/api/stats")).body["by_model"]:
        cost = int(Decimal(one["costs"].get("USD", "0")) * 1_000_000)
        counts[one["provider"]] += Counter(
            calls=one["calls"], failed_calls=one["failed_calls"], runs=one["runs"], micro_usd=cost
        )
    return counts


async def test_an_open_circuit_is_503_with_the_time_that_it_stays_open(serve: Serve) -> None:
    """BREAK-2; C27: a chain of one link fails at once, and the caller is told when to come back."""
    client = await serve(DOWN, more=OPEN_AT_ONCE)
    first, second = await client.run("a"), await client.run("a")
    assert (first.status, first.headers["Retry-After"]) == (503, "1")
    assert (second.status, second.body["code"]) == (503, "provider_unavailable")
    assert 20 <= int(second.headers["Retry-After"]) <= 30
    assert 20 <= second.body["retry_after_s"] <= 30
    assert second.body["detail"] == "provider p1 failed (unavailable): the circuit of provider p1 is open"
    assert await calls(client, second.body["run"]["id"]) == [("p1", "circuit_open")]


async def test_a_watched_run_is_told_in_its_last_frame(serve: Serve) -> None:
    """BREAK-2."""
    client = await serve(DOWN, more=OPEN_AT_ONCE)
    await client.run("a")
    async with client.start("a") as stream:
        last = (await stream.rest())[-1]
    assert last.event == "RunFailed"
    assert 20 <= last.data["data"]["retry_after_s"] <= 30


async def test_a_providers_own_wish_reaches_the_caller(serve: Serve) -> None:
    client = await serve("default = { status = { status = 503, retry_after = 17 } }")
    answer = await client.run("a")
    assert (answer.status, answer.headers["Retry-After"]) == (503, "17")


async def test_an_exhausted_chain_is_503_until_the_first_link_may_serve_again(serve: Serve) -> None:
    """BREAK-2, CHAIN-10."""
    limited = "default = { status = { status = 429, retry_after = 7 } }"
    client = await serve(DOWN, limited, more=OPEN_AT_ONCE)
    answer = await client.run("a")
    assert (answer.status, answer.body["code"]) == (503, "chain_exhausted")
    assert answer.headers["Retry-After"] == "7"


async def test_an_outage_from_its_beginning_to_its_end(serve: Serve) -> None:
    """BREAK-1, BREAK-2, CHAIN-6; C24, C26: all runs are served, and the primary soon after it is back."""
    primary = 'script = [{ status = 503, repeat = 2 }]\ndefault = { text = "Primary." }'
    more = "[circuit_breaker]\nfailure_threshold = 2\nbreak_duration = 0.5"
    client = await serve(primary, 'default = { text = "Backup." }', more=more)
    assert await circuits(client) == {"p1": "closed", "p2": "closed"}
    for seen in ("status", "status", "circuit_open"):
        answer = await client.run("a")
        assert answer.body["answer"] == "Backup."
        assert (await calls(client, answer.body["id"]))[0] == ("p1", seen)
    assert await circuits(client) == {"p1": "open", "p2": "closed"}
    assert (await shown(client))['tracon_circuit_open{provider="p1"}'] == 1
    await eventually(lambda: client.host.services.circuits.health(Account("p1")).circuit == "half_open")
    assert (await circuits(client))["p1"] == "half_open"
    assert (await client.run("a")).body["answer"] == "Primary."
    assert await circuits(client) == {"p1": "closed", "p2": "closed"}
    series = await shown(client)
    assert series['tracon_circuit_open{provider="p1"}'] == 0
    assert series['tracon_circuit_opened_total{provider="p1"}'] == 1
    assert series['tracon_circuit_opened_total{provider="p2"}'] == 0
    assert series['tracon_circuit_refused_total{provider="p1"}'] == 1
    assert series['tracon_model_fallbacks_total{fallback="p2/m",primary="p1/m"}'] == 3
    assert series['tracon_model_calls_total{model="m",outcome="unavailable",provider="p1"}'] == 2
    assert series['tracon_model_calls_total{model="m",outcome="replied",provider="p1"}'] == 1


async def test_a_provider_that_is_back_is_called_although_a_call_that_tried_it_hangs(serve: Serve) -> None:
    """BREAK-2: the one call that may try a circuit must not be able to shut out everybody for ever."""
    script = 'script = [{ status = 503 }, { silent = true }]\ndefault = { text = "All well." }'
    more = (
        "[circuit_breaker]\nfailure_threshold = 1\nbreak_duration = 0.05\nprobe_patience = 0.2\n"
        "[turn]\ntimeout = 60"
    )
    client = await serve(script, more=more)
    assert (await client.run("a")).status == 503
    await eventually(lambda: client.host.services.circuits.health(Account("p1")).circuit == "half_open")
    path, body = "/tracon/api/agents/a/run", {"message": "hello"}
    async with client.session.post(path, json=body, headers=STREAM) as hanging:
        trying = hanging.headers["X-Run-Id"]
        async with asyncio.timeout(20):
            while not any(event["type"] == "ModelCallStarted" for event in await client.events(trying)):
                await asyncio.sleep(0)
            answers = [await client.run("a")]
            while answers[-1].status != 200:
                answers.append(await client.run("a"))
        assert {answer.status for answer in answers} <= {200, 503}
        assert answers[-1].body["answer"] == "All well."
        assert await circuits(client) == {"p1": "closed"}
        assert (await client.get(f"/tracon/api/runs/{trying}")).body["status"] == "Running"


async def test_health_says_how_a_provider_fares(serve: Serve) -> None:
    """BREAK-1."""
    client = await serve(DOWN, OK, more="[circuit_breaker]\nfailure_threshold = 2\nbreak_duration = 30")
    await client.run("a")
    primary, _ = (await client.get("/tracon/api/models/health")).body["providers"]
    assert primary == {
        "provider": "p1", "key": "shared",
        "circuit": "closed", "consecutive_failures": 1, "retry_after_s": None, "seen": None,
    }  # fmt: skip
    await client.run("a")
    primary, backup = (await client.get("/tracon/api/models/health")).body["providers"]
    assert (primary["circuit"], primary["consecutive_failures"]) == ("open", 2)
    assert 20 <= primary["retry_after_s"] <= 30
    assert backup["consecutive_failures"] == 0


async def test_two_links_on_one_provider_share_its_circuit_and_another_name_has_its_own(
    host_of: OpenHost, serve: Serve
) -> None:
    """BREAK-1: another credential is another provider by name, at the same address."""
    models = f"[providers.one.models.m]\n{DOWN}\n[providers.one.models.n]\n{OK}\n"
    other = f'[providers.two]\ntype = "scripted"\n[providers.two.models.m]\n{OK}\n'
    agents = (
        '[agents.sick]\nprovider = "one"\nmodel = "m"\n'
        '[agents.well]\nprovider = "one"\nmodel = "n"\n'
        '[agents.both]\nprovider = "one"\nmodel = "m"\nfallbacks = [{ provider = "one", model = "n" }]\n'
        '[agents.other]\nprovider = "two"\nmodel = "m"\n'
    )
    host = await host_of(f'{OPEN_AT_ONCE}\n[providers.one]\ntype = "scripted"\n{models}{other}{agents}')
    async with ClientSession(base_url=host.url) as session:
        client = Client(host, session)
        assert (await client.run("well")).status == 200
        assert (await client.run("sick")).status == 503
        refused = await client.run("well")
        assert (refused.status, refused.body["code"]) == (503, "provider_unavailable")
        both = await client.run("both")
        assert await calls(client, both.body["run"]["id"]) == [("one", "circuit_open")] * 2
        assert (await client.run("other")).status == 200


async def test_places_are_shown_while_they_are_held_and_waited_for(serve: Serve) -> None:
    """CONC-2."""
    more = "[model_concurrency]\nmax_concurrent_calls_per_provider = 1"
    client = await serve('script = [{ silent = true }]\ndefault = { text = "ok" }', more=more)
    path, body = "/tracon/api/agents/a/run", {"message": "hello"}
    async with client.session.post(path, json=body, headers=STREAM) as first:
        waiting = asyncio.create_task(client.run("a"))
        count = client.count
        await eventually(lambda: count("tracon_model_calls_waiting", provider="p1") == 1)
        series = await shown(client)
        assert series['tracon_model_places_in_use{provider="p1"}'] == 1
        assert series['tracon_model_calls_waiting{provider="p1"}'] == 1
        await client.post(f"/tracon/api/runs/{first.headers['X-Run-Id']}/cancel")
        assert (await waiting).body["answer"] == "ok"
    series = await shown(client)
    assert series['tracon_model_places_in_use{provider="p1"}'] == 0
    assert series['tracon_model_calls_waiting{provider="p1"}'] == 0


async def test_retries_and_replies_given_again_are_counted(serve: Serve) -> None:
    """BREAK-3, CHAIN-11: a hit is no call; its cost and its tokens are none."""
    flaky = 'script = [{ status = 500 }]\ndefault = { text = "All well." }'
    client = await serve(flaky, agent="cache_replies = true")
    first, second = await client.run("a"), await client.run("a")
    assert first.body["answer"] == second.body["answer"] == "All well."
    assert first.body["usage"]["output_tokens"] > 0
    assert (second.body["usage"]["output_tokens"], second.body["cost"]) == (0, "0")
    events = await client.events(second.body["id"])
    assert [e["data"]["cached"] for e in events if e["type"] == "ModelReplied"] == [True]
    assert "TextDelta" not in {e["type"] for e in events}, "nobody watched"
    series = await shown(client)
    assert series['tracon_model_retries_total{model="m",provider="p1"}'] == 1
    assert series['tracon_cached_replies_total{model="m",provider="p1"}'] == 1
    assert series['tracon_model_calls_total{model="m",outcome="replied",provider="p1"}'] == 1


async def test_a_watcher_hears_a_reply_that_is_given_again(serve: Serve) -> None:
    """BREAK-3."""
    client = await serve(
        'script = [{ text = "All well." }]\ndefault = { text = "never" }', agent="cache_replies = true"
    )
    await client.run("a")
    async with client.start("a") as stream:
        frames = await stream.rest()
    assert "".join(f.data["data"]["text"] for f in frames if f.event == "TextDelta") == "All well."


async def test_an_open_circuit_blocks_a_reply_that_is_kept(serve: Serve) -> None:
    """BREAK-3."""
    fails_then = f'script = [{{ text = "All well." }}, {{ status = 503 }}]\n{OK}'
    client = await serve(fails_then, agent="cache_replies = true", more=OPEN_AT_ONCE)
    assert (await client.run("a", "one")).status == 200
    assert (await client.run("a", "two")).status == 503
    assert (await client.run("a", "one")).status == 503


async def test_statistics_by_model_are_of_the_model_that_answered(serve: Serve) -> None:
    """CHAIN-12: a call that an open circuit refused is no call of anybody."""
    priced = 'input_per_million = "1"\noutput_per_million = "1"\n'
    dear = f"{priced}{DOWN}"
    client = await serve(dear, f"{priced}{OK}", more=OPEN_AT_ONCE)
    before = await spent(client)
    for _ in range(2):
        run = (await client.run("a")).body
        assert (run["provider"], run["model_id"], run["cost"]) == ("p2", "m", "0.000003")
    after = await spent(client)
    assert after["p1"] - before["p1"] == Counter(failed_calls=1)
    assert after["p2"] - before["p2"] == Counter(calls=2, runs=2, micro_usd=6)


async def test_the_applications_classifier_decides_what_a_failure_is(serve: Serve) -> None:
    """CLASS-1: one that raises is passed over."""

    @classifier
    def broken(provider: str, failure: CallFailure) -> FailureClass:
        raise RuntimeError("a defect of the application")

    @classifier(provider="p1")
    def teapots(provider: str, failure: CallFailure) -> FailureClass | None:
        return FailureClass.UNAVAILABLE if failure.status == 418 else None

    client = await serve("default = { status = 418 }", OK, classifiers=(broken, teapots))
    assert (await client.run("a")).body["answer"] == "All well."


async def test_a_provider_that_wants_to_be_paid_opens_its_circuit_if_asked(
    serve: Serve,
) -> None:
    """CLASS-3; C18, C19."""
    unpaid = 'default = { status = { status = 402, message = "pay first" } }'
    rule = '[chain]\nclassifiers = ["payment_required_to_next"]'
    client = await serve(unpaid, OK, more=f"{rule}\n{OPEN_AT_ONCE}")
    for seen in ("status", "circuit_open"):
        run = (await client.run("a")).body
        assert run["answer"] == "All well."
        assert (await calls(client, run["id"]))[0] == ("p1", seen)
    plain = await serve(unpaid, OK, more=OPEN_AT_ONCE)
    answer = await plain.run("a")
    assert (answer.status, answer.body["code"]) == (422, "provider_rejected")


async def test_a_request_that_is_too_long_goes_to_a_larger_window_if_asked(
    serve: Serve,
) -> None:
    """CLASS-3."""
    full = 'default = { status = { status = 400, code = "context_length_exceeded" } }'
    small, same, large = (
        f"context_window = 8\n{full}",
        f"context_window = 8\n{OK}",
        f"context_window = 16\n{OK}",
    )
    client = await serve(small, same, large, more='[chain]\nclassifiers = ["context_overflow_to_larger"]')
    run = (await client.run("a")).body
    assert (run["answer"], run["provider"]) == ("All well.", "p3")
    skips = [e["data"] for e in await client.events(run["id"]) if e["type"] == "ChainLinkSkipped"]
    assert [(skip["provider"], skip["reason"]) for skip in skips] == [("p2", "window_too_small")]


class TestJudge:
    """CHAIN-13: what a caller is told of an answer that its judge refused, or could not be asked about."""

    LOOP = '[agents.a.loop]\ncriterion = "It is well."\njudge = { provider = "p2", model = "m" }'
    UNMET = 'default = { text = \'{"met": false, "reason": "It is not."}\' }'

    async def test_a_judge_that_is_down_is_503_and_when_to_come_back(self, serve: Serve) -> None:
        limited = "default = { status = { status = 503, retry_after = 17 } }"
        client = await serve(OK, limited, agent=self.LOOP)
        answer = await client.run("a")
        assert (answer.status, answer.body["code"]) == (503, "judge_unavailable")
        assert answer.headers["Retry-After"] == "17"
        assert answer.body["run"]["model_id"] == "m"
        assert answer.body["run"]["provider"] == "p1"

    async def test_an_answer_that_stays_unmet_is_422_with_the_reason(self, serve: Serve) -> None:
        client = await serve(OK, self.UNMET, agent=self.LOOP)
        answer = await client.run("a")
        assert (answer.status, answer.body["code"]) == (422, "criterion_not_met")
        assert answer.body["detail"].endswith("It is not.")

    async def test_an_answer_that_was_sent_back_is_not_told_on_v1(self, serve: Serve) -> None:
        """It could not be taken back. What the judge used is part of the usage."""
        drafts = 'script = [{ text = "Soon." }]\ndefault = { text = "On Tuesday." }'
        met = self.UNMET.removeprefix("default = ").replace("false", "true")
        once = f"script = [{self.UNMET.removeprefix('default = ')}]\ndefault = {met}"
        client = await serve(drafts, once, agent=self.LOOP)
        asked = {"model": "a", "messages": [{"role": "user", "content": "When?"}], "stream": True}
        asked |= {"stream_options": {"include_usage": True}}
        async with client.session.post("/tracon/v1/chat/completions", json=asked) as response:
            told, run_id = (await response.read()).decode(), response.headers["X-Run-Id"]
        kinds = [event["type"] for event in await client.events(run_id)]
        assert kinds.count("CriterionJudged") == 2
        assert "On Tuesday." in told
        assert "Soon." not in told
        run = (await client.get(f"/tracon/api/runs/{run_id}")).body
        assert f'"prompt_tokens":{run["usage"]["input_tokens"]}' in told

    async def test_statistics_have_the_judges_calls_under_its_own_model(self, serve: Serve) -> None:
        met = self.UNMET.replace("false", "true")
        priced = f'input_per_million = "1"\noutput_per_million = "1"\n{met}'
        client = await serve(OK, priced, agent=self.LOOP)
        before = await spent(client)
        answer = await client.run("a")
        after = await spent(client)
        assert answer.body["answer"] == "All well."
        new = {name: after[name] - before[name] for name in ("p1", "p2")}
        assert {name: counts["calls"] for name, counts in new.items()} == {"p1": 1, "p2": 1}
        assert new["p2"]["micro_usd"] > 0
