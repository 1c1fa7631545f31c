"""Model calls along the chain, on whole hosts: which link is called when, and what is on record (CHAIN)."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from app.main import Host
from app.models.accounts import Account
from domain import events as e
from domain.agent import Link
from domain.failure import ErrorClass, FailureClass
from domain.ids import DEFAULT_TENANT
from projections.run_record import record_of
from tests.hosts import OpenHost, chained, follow, kinds, only, start
from tests.supervision.one_database import database as database
from tracon import tool

P1, P2, P3 = (Link(provider=f"p{number}", model="m") for number in (1, 2, 3))
OK = 'default = { text = "All well." }'
DOWN = 'default = { status = { status = 503, message = "down" } }'
ONCE = 'script = [{ status = 500 }]\ndefault = { text = "All well." }'
LOOKS = 'default = [{ tool_call = { name = "look" } }, { text = "All well." }]'


@tool(effect="read")
def look() -> str:
    """Look."""
    return "seen"


async def run(host: Host, **more: Any) -> list[e.Recorded[e.Event]]:
    return await follow(host, await start(host, "a", **more))


def called(seen: list[e.Recorded[e.Event]]) -> list[str]:
    """The providers in the order of the calls."""
    return [call.provider for call in only(seen, e.ModelCallStarted)]


async def test_a_transient_failure_is_tried_once_more_on_the_same_link(host_of: OpenHost) -> None:
    """CHAIN-2, CHAIN-11; C4."""
    seen = await run(await host_of(chained(ONCE, OK)))
    assert kinds(seen)[2:] == [
        "ModelCallStarted",
        "ModelCallFailed",
        "ModelCallRetried",
        "ModelCallStarted",
        "ModelReplied",
        "RunCompleted",
    ]
    assert called(seen) == ["p1", "p1"]
    (retried,) = only(seen, e.ModelCallRetried)
    assert (retried.step, retried.provider, retried.failure_class) == (1, "p1", FailureClass.TRANSIENT)
    assert only(seen, e.RunCompleted) == [e.RunCompleted(answer="All well.")]


async def test_the_wait_before_a_retry_is_the_providers_wish_and_jittered(host_of: OpenHost) -> None:
    """CHAIN-2: the record has the wait that was really kept."""
    limited = 'script = [{ status = { status = 429, retry_after = 0.3 } }]\ndefault = { text = "All well." }'
    seen = await run(await host_of(chained(limited)))
    (retried,) = only(seen, e.ModelCallRetried)
    assert 300 <= retried.wait_ms <= 700
    failed, again = (one.at for one in seen if isinstance(one.event, e.ModelCallFailed | e.ModelReplied))
    assert (again - failed).total_seconds() >= 0.3


@pytest.mark.parametrize(
    "script",
    ["[{ status = 500 }, { empty = true }]", "[{ empty = true }, { reset = true }]"],
    ids=["transient, then empty", "empty, then transient"],
)
async def test_the_classes_that_are_retried_share_the_one_retry(host_of: OpenHost, script: str) -> None:
    """CHAIN-2."""
    seen = await run(await host_of(chained(f'script = {script}\ndefault = {{ text = "never" }}', OK)))
    assert called(seen) == ["p1", "p1", "p2"]


async def test_what_is_unavailable_is_left_at_once(host_of: OpenHost) -> None:
    """CHAIN-3, CHAIN-11: the switch says which links, of what, and why."""
    seen = await run(await host_of(chained(DOWN, OK)))
    assert called(seen) == ["p1", "p2"]
    assert only(seen, e.ModelFallbackUsed) == [
        e.ModelFallbackUsed(
            primary=P1,
            fallback=P2,
            failure_class=FailureClass.UNAVAILABLE,
            reason="it answered 503: down",
            step=1,
        )
    ]
    assert only(seen, e.RunCompleted) == [e.RunCompleted(answer="All well.", fallbacks_taken=(P1,))]


async def test_the_link_that_answered_stays_selected_for_the_steps_that_follow(host_of: OpenHost) -> None:
    """CHAIN-6: a later step does not try again what was left in an earlier one."""
    host = await host_of(chained(DOWN, LOOKS, OK, agent='tools = ["look"]'), tools=(look,))
    seen = await run(host)
    assert called(seen) == ["p1", "p2", "p2"]
    assert len(only(seen, e.ModelFallbackUsed)) == 1


async def test_every_step_has_its_retry(host_of: OpenHost) -> None:
    """CHAIN-2: per link per step."""
    calls = '[{ status = 500 }, { tool_call = { name = "look" } }, { status = 500 }, { text = "All well." }]'
    host = await host_of(chained(f"script = {calls}", OK, agent='tools = ["look"]'), tools=(look,))
    seen = await run(host)
    assert called(seen) == ["p1"] * 4
    assert [(one.step, one.attempt) for one in only(seen, e.ModelCallStarted)] == [
        (1, 1),
        (1, 2),
        (2, 1),
        (2, 2),
    ]


@pytest.mark.parametrize(
    ("behaviour", "error_type"),
    [
        ("status = 401", "provider_auth"),
        ("status = 404", "provider_rejected"),
        ("content_filter = true", "content_filtered"),
    ],
)
async def test_some_failures_end_the_chain(host_of: OpenHost, behaviour: str, error_type: str) -> None:
    """CHAIN-3: nothing is hidden behind a silent switch. The link has failed, so it is listed."""
    seen = await run(await host_of(chained(f"default = {{ {behaviour} }}", OK)))
    assert called(seen) == ["p1"]
    (failed,) = only(seen, e.RunFailed)
    assert (failed.error_type, failed.fallbacks_taken, failed.refunded) == (error_type, (P1,), False)


async def test_the_failure_of_an_only_link_is_the_runs_own(host_of: OpenHost) -> None:
    """CHAIN-1: not `chain_exhausted`, and nothing is refunded."""
    seen = await run(await host_of(chained("default = { status = 500 }")))
    assert called(seen) == ["p1", "p1"]
    assert "ChainExhausted" not in kinds(seen)
    assert only(seen, e.RunFailed) == [
        e.RunFailed(
            error="provider p1 failed (transient): it answered 500",
            error_type="provider_unavailable",
            error_class=ErrorClass.PROVIDER,
        )
    ]


async def test_an_exhausted_chain_fails_with_the_first_links_error_and_names_them_all(
    host_of: OpenHost,
) -> None:
    """CHAIN-10, CHAIN-11."""
    seen = await run(await host_of(chained(DOWN, "default = { refused = true }")))
    (end,) = only(seen, e.ChainExhausted)
    (failed,) = only(seen, e.RunFailed)
    assert failed.error == (
        "provider p1 failed (unavailable): it answered 503: down; no link is left: "
        "p1/m failed (unavailable): it answered 503: down; "
        "p2/m failed (unavailable): no connection: the script refuses it"
    )
    assert (end.error, end.links, end.step) == (failed.error, (P1, P2), 1)
    assert (failed.error_type, failed.error_class) == ("chain_exhausted", ErrorClass.PROVIDER)
    assert (failed.fallbacks_taken, failed.refunded) == ((P1, P2), True)


async def test_a_chain_that_is_exhausted_in_a_later_step_has_the_same_cause(host_of: OpenHost) -> None:
    """CHAIN-10: at every call site; the first link's error, although it was left long before."""
    second = 'default = [{ tool_call = { name = "look" } }, { refused = true }]'
    host = await host_of(chained(DOWN, second, agent='tools = ["look"]'), tools=(look,))
    seen = await run(host)
    (failed,) = only(seen, e.RunFailed)
    assert failed.error.startswith("provider p1 failed (unavailable): it answered 503: down; no link is left")
    assert (failed.error_type, failed.refunded) == ("chain_exhausted", True)


async def test_a_link_that_cannot_call_tools_is_skipped_without_a_call(host_of: OpenHost) -> None:
    """CHAIN-4, CHAIN-11."""
    mute = f"supports_tools = false\n{OK}"
    host = await host_of(chained(DOWN, mute, LOOKS, agent='tools = ["look"]'), tools=(look,))
    seen = await run(host)
    assert called(seen) == ["p1", "p3", "p3"]
    assert only(seen, e.ChainLinkSkipped) == [
        e.ChainLinkSkipped(step=1, provider="p2", model="m", reason="no_tool_support")
    ]
    assert only(seen, e.RunCompleted)[0].fallbacks_taken == (P1, P2)


async def test_a_primary_that_cannot_call_tools_is_skipped_too(host_of: OpenHost) -> None:
    """CHAIN-4."""
    mute = f"supports_tools = false\n{OK}"
    host = await host_of(chained(mute, LOOKS, agent='tools = ["look"]'), tools=(look,))
    seen = await run(host)
    assert kinds(seen)[2:5] == ["ChainLinkSkipped", "ModelFallbackUsed", "ModelCallStarted"]
    assert only(seen, e.RunCompleted)[0].fallbacks_taken == (P1,)


async def test_agents_that_may_be_called_are_tools_to_a_model(host_of: OpenHost) -> None:
    """CHAIN-4: a link that cannot call tools cannot call agents."""
    mute = f"supports_tools = false\n{OK}"
    other = '\n[agents.b]\nprovider = "p2"\nmodel = "m"\n'
    seen = await run(await host_of(chained(mute, OK, agent='agents = ["b"]') + other))
    assert called(seen) == ["p2"]
    assert [skip.reason for skip in only(seen, e.ChainLinkSkipped)] == ["no_tool_support"]


async def test_a_turn_that_no_link_can_serve_fails_without_a_call(host_of: OpenHost) -> None:
    """CHAIN-4."""
    mute = f"supports_tools = false\n{OK}"
    host = await host_of(chained(mute, mute, agent='tools = ["look"]'), tools=(look,))
    seen = await run(host)
    assert called(seen) == []
    (failed,) = only(seen, e.RunFailed)
    assert (failed.error_type, failed.error_class) == ("chain_exhausted", ErrorClass.INVALID)


async def test_provider_model_and_cost_are_of_the_link_that_answered(host_of: OpenHost) -> None:
    """CHAIN-12."""
    dear = f'input_per_million = "100"\noutput_per_million = "100"\n{DOWN}'
    usage = "usage = { input_tokens = 1000, output_tokens = 100, cached_input_tokens = 400 }"
    cheap = (
        'input_per_million = "1"\noutput_per_million = "2"\ncached_input_per_million = "0.5"\n'
        f'default = {{ text = "All well.", {usage} }}'
    )
    seen = await run(await host_of(chained(dear, cheap)))
    (replied,) = only(seen, e.ModelReplied)
    assert (replied.provider, replied.model, replied.cost) == ("p2", "m", Decimal("0.001"))
    record = record_of(seen)
    assert record is not None
    assert (record.provider, record.model_id, record.cost) == ("p2", "m", "0.001")


async def test_an_unknown_price_is_not_zero(host_of: OpenHost) -> None:
    """CHAIN-12."""
    seen = await run(await host_of(chained(DOWN, OK)))
    record = record_of(seen)
    assert record is not None
    assert record.cost is None


async def test_a_retry_that_could_not_be_made_in_time_is_not_waited_for(host_of: OpenHost) -> None:
    """CHAIN-2: no wait outlives the run's deadline; the next link is called at once."""
    limited = "default = { status = { status = 429, retry_after = 1.9 } }"
    seen = await run(await host_of(chained(limited, OK, more='[turn]\ntimeout = "1.8s"')))
    assert called(seen) == ["p1", "p2"]
    assert kinds(seen)[-1] == "RunCompleted"


async def test_a_long_wish_is_not_waited_for_where_another_link_can_serve(host_of: OpenHost) -> None:
    """CHAIN-2: whatever the status that it comes with."""
    busy = "default = { status = { status = 500, retry_after = 60 } }"
    seen = await run(await host_of(chained(busy, OK)))
    assert called(seen) == ["p1", "p2"]
    assert only(seen, e.ModelCallRetried) == []


async def test_how_long_a_wish_may_be_is_a_setting(host_of: OpenHost) -> None:
    """CHAIN-2: `chain.retry_after_cap`."""
    busy = "default = { status = { status = 500, retry_after = 0.1 } }"
    seen = await run(await host_of(chained(busy, OK, more='[chain]\nretry_after_cap = "50ms"')))
    assert called(seen) == ["p1", "p2"]


async def test_runs_that_fail_together_do_not_come_back_together(host_of: OpenHost) -> None:
    """CHAIN-2: the wait is jittered."""
    host = await host_of(chained("default = { status = 500 }"))
    together = await asyncio.gather(*(run(host) for _ in range(5)))
    waits = {retried.wait_ms for seen in together for retried in only(seen, e.ModelCallRetried)}
    assert len(waits) > 1
    assert all(100 <= wait <= 500 for wait in waits)


async def test_a_turn_that_began_behind_its_primary_stays_where_it_came_to(host_of: OpenHost) -> None:
    """CHAIN-4, CHAIN-6, CHAIN-11: links are skipped once, and every switch is one from the primary."""
    mute = f"supports_tools = false\n{OK}"
    flaky = f"script = [{{ status = 500 }}]\n{LOOKS}"
    host = await host_of(chained(mute, DOWN, flaky, agent='tools = ["look"]'), tools=(look,))
    seen = await run(host)
    assert called(seen) == ["p2", "p3", "p3", "p3"]
    assert [skip.provider for skip in only(seen, e.ChainLinkSkipped)] == ["p1"]
    assert only(seen, e.RunCompleted)[0].fallbacks_taken == (P1, P2)
    counted = host.services.metrics.registry.get_sample_value
    switches = [
        counted("tracon_model_fallbacks_total", {"primary": "p1/m", "fallback": f"{provider}/m"})
        for provider in ("p2", "p3")
    ]
    assert switches == [1, 1]
    assert counted("tracon_model_retries_total", {"provider": "p3", "model": "m"}) == 1


async def test_a_cancel_in_the_wait_before_a_retry_ends_the_run_at_once(host_of: OpenHost) -> None:
    """CANCEL-3; C51."""
    limited = "default = { status = { status = 429, retry_after = 2 } }"
    host = await host_of(chained(limited, OK))
    run_id = await start(host, "a")
    await follow(host, run_id, e.ModelCallRetried)
    await host.services.runs.cancel(DEFAULT_TENANT, run_id)
    seen = await follow(host, run_id)
    assert kinds(seen)[-3:] == ["ModelCallRetried", "RunCancelRequested", "RunCancelled"]
    assert called(seen) == ["p1"]
    ended, waited = seen[-1].at - seen[-3].at, only(seen, e.ModelCallRetried)[0].wait_ms / 1000
    assert ended.total_seconds() < waited


async def test_a_call_behind_a_kept_reply_is_one_of_its_own(host_of: OpenHost) -> None:
    """BREAK-3, CHAIN-12: only what was kept costs nothing."""
    looked = 0

    @tool(name="look", effect="read")
    def look_again() -> str:
        """Look."""
        nonlocal looked
        looked += 1
        return f"seen {looked} times"

    priced = f'input_per_million = "1"\noutput_per_million = "1"\n{LOOKS}'
    host = await host_of(chained(priced, agent='tools = ["look"]\ncache_replies = true'), tools=(look_again,))
    for kept in ([False, False], [True, False]):
        seen = await run(host)
        replies = only(seen, e.ModelReplied)
        assert only(seen, e.TextDelta) == [], "nobody watches"
        assert [reply.cached for reply in replies] == kept
        assert [reply.cost == 0 for reply in replies] == kept
        assert [reply.usage.total == 0 for reply in replies] == kept


class TestFirstContent:
    """CLASS-2: the limit for the first content, on every link but the last one left."""

    SHORT = '[chain]\nfirst_content_timeout = "100ms"'
    SLOW = 'default = { text = "All well.", first_delay = "250ms" }'

    @pytest.mark.parametrize("streaming", [True, False], ids=["watched", "waited for"])
    async def test_a_silent_link_is_left_for_the_next(self, host_of: OpenHost, streaming: bool) -> None:
        host = await host_of(chained("default = { silent = true }", OK, more=self.SHORT))
        seen = await run(host, streaming=streaming)
        assert called(seen) == ["p1", "p2"]
        (failed,) = only(seen, e.ModelCallFailed)
        assert (failed.failure.kind, failed.failure_class) == ("silent", FailureClass.UNAVAILABLE)

    @pytest.mark.parametrize("streaming", [True, False], ids=["watched", "waited for"])
    async def test_the_last_link_has_all_the_time_that_the_run_has(
        self, host_of: OpenHost, streaming: bool
    ) -> None:
        host = await host_of(chained(DOWN, self.SLOW, more=self.SHORT))
        assert called(await run(host, streaming=streaming)) == ["p1", "p2"]
        alone = await host_of(chained(self.SLOW, more=self.SHORT))
        assert called(await run(alone, streaming=streaming)) == ["p1"]

    async def test_the_last_that_can_serve_the_turn_is_the_last(self, host_of: OpenHost) -> None:
        mute = f"supports_tools = false\n{OK}"
        host = await host_of(
            chained(self.SLOW, mute, more=self.SHORT, agent='tools = ["look"]'), tools=(look,)
        )
        seen = await run(host)
        assert called(seen) == ["p1"]
        assert len(only(seen, e.RunCompleted)) == 1

    async def test_a_long_answer_that_nobody_watches_is_not_taken_for_silence(
        self, host_of: OpenHost
    ) -> None:
        """In one piece it would not be there before all of it is, long after the limit."""
        talks = 'default = { text = "one two three four five six", delay = "60ms" }'
        host = await host_of(chained(talks, OK, more=self.SHORT))
        seen = await run(host)
        assert called(seen) == ["p1"]
        assert only(seen, e.TextDelta) == []
        assert only(seen, e.RunCompleted)[0].answer == "one two three four five six"


class TestPlaces:
    """CONC: a limit of one call per provider, whose place the test holds."""

    ONE = "[model_concurrency]\nmax_concurrent_calls_per_provider = 1\n"

    async def hold(self, host: Host) -> asyncio.Task[object]:
        held = asyncio.Event()

        async def call() -> object:
            held.set()
            return await asyncio.Event().wait()

        holding: asyncio.Task[object] = asyncio.create_task(host.bench.gate.call(Account("p1"), call))  # type: ignore[arg-type]
        await held.wait()
        return holding

    async def free(self, holding: asyncio.Task[object]) -> None:
        holding.cancel()
        await asyncio.wait([holding])

    async def test_a_long_wait_is_told_in_the_run(self, host_of: OpenHost) -> None:
        """CONC-2: after a second."""
        host = await host_of(chained(OK, more=self.ONE))
        holding = await self.hold(host)
        run_id = await start(host, "a")
        seen = await follow(host, run_id, e.ModelCallQueued)
        assert only(seen, e.ModelCallQueued) == [
            e.ModelCallQueued(step=1, attempt=1, provider="p1", model="m")
        ]
        waited = seen[-1].at - seen[0].at
        assert waited.total_seconds() >= 1
        await self.free(holding)
        assert kinds(await follow(host, run_id))[-2:] == ["ModelReplied", "RunCompleted"]

    async def test_a_wait_ends_at_the_runs_deadline_with_an_error_that_names_the_provider(
        self, host_of: OpenHost
    ) -> None:
        """CONC-1."""
        host = await host_of(chained(OK, more=f'{self.ONE}[turn]\ntimeout = "50ms"'))
        holding = await self.hold(host)
        (failed,) = only(await run(host), e.RunFailed)
        assert (failed.error_type, failed.error_class) == ("deadline_exceeded", ErrorClass.TIMEOUT)
        assert "it waited for a place at provider p1" in failed.error
        assert "model_concurrency.max_concurrent_calls_per_provider" in failed.error
        await self.free(holding)

    async def test_a_cancel_ends_the_wait(self, host_of: OpenHost) -> None:
        """CONC-1, CANCEL-3."""
        host = await host_of(chained(OK, more=self.ONE))
        holding = await self.hold(host)
        run_id = await start(host, "a")
        await follow(host, run_id, e.ModelCallStarted)
        await host.services.runs.cancel(DEFAULT_TENANT, run_id)
        assert kinds(await follow(host, run_id))[-1] == "RunCancelled"
        await self.free(holding)
        assert kinds(await run(host))[-1] == "RunCompleted"
