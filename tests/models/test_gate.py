"""The gate: what stands before a call, in which order, and what each call leaves behind (BREAK, CONC)."""

import asyncio
import sys
from pathlib import Path
from types import FrameType

import pytest

from app.metrics import Metrics
from app.models.accounts import Account
from app.models.circuits import Circuits
from app.models.classifiers import Classifiers
from app.models.gate import CallFailed, CallOverdue, Gate
from app.models.places import Places
from app.models.port import ModelCallError, ModelReply, StillSilent
from app.models.response_cache import ResponseCache
from app.settings import CircuitBreakerSettings, ResponseCacheSettings
from domain.breaker import CircuitStatus, ProviderUnavailable
from domain.events import FinishReason
from domain.failure import CallFailure, FailureClass, FailureKind
from domain.messages import AssistantMessage
from tests.models.clock import Clock

P = Account("primary")
REPLY = ModelReply(message=AssistantMessage(content="Hello."), finish=FinishReason.STOP)
DOWN = CallFailure(kind=FailureKind.STATUS, status=503, message="down")
SILENT = CallFailure(kind=FailureKind.SILENT, message="no content")
REJECTED = CallFailure(kind=FailureKind.STATUS, status=400, message="no")


class Provider:
    """Calls that end as the test says, and how many were made."""

    def __init__(self) -> None:
        self.calls = 0
        self.outcome: BaseException | ModelReply = REPLY
        self.gate = asyncio.Event()
        self.gate.set()
        self.reached = asyncio.Event()

    async def __call__(self) -> ModelReply:
        self.calls += 1
        self.reached.set()
        await self.gate.wait()
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome

    def fails(self, failure: CallFailure) -> None:
        self.outcome = ModelCallError(failure)

    def holds(self) -> None:
        self.gate.clear()
        self.reached.clear()


class Bench:
    """A gate with everything in it, a clock to move, and one provider behind it."""

    def __init__(self, limit: int | None = None, threshold: int = 2) -> None:
        self.clock = Clock()
        self.metrics = Metrics()
        settings = CircuitBreakerSettings(failure_threshold=threshold, break_duration=30.0)
        self.circuits = Circuits(settings, self.metrics, clock=self.clock)
        self.provider = Provider()
        self.hits: list[ModelReply] = []
        self.gate = Gate(
            self.circuits,
            Classifiers(),
            None if limit is None else Places(limit, self.metrics),
            ResponseCache(ResponseCacheSettings(), self.clock),
        )

    async def call(self, cache_key: bytes | None = None) -> ModelReply:
        return await self.gate.call(P, self.provider, cache_key=cache_key, on_hit=self.hits.append)

    async def fail(self, failure: CallFailure = DOWN) -> CallFailed:
        self.provider.fails(failure)
        with pytest.raises(CallFailed) as failed:
            await self.call()
        self.provider.outcome = REPLY
        return failed.value

    async def open(self) -> None:
        for _ in range(2):
            await self.fail()

    @property
    def status(self) -> CircuitStatus:
        return self.circuits.health(P).circuit

    @property
    def places_in_use(self) -> float:
        return (
            self.metrics.registry.get_sample_value("tracon_model_places_in_use", {"provider": P.provider})
            or 0.0
        )


@pytest.fixture(params=[None, 1], ids=["unlimited", "one place"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(request.param)


async def test_a_reply_is_passed_on(bench: Bench) -> None:
    assert await bench.call() is REPLY


async def test_a_failure_comes_with_its_verdict(bench: Bench) -> None:
    """CLASS-1."""
    failed = await bench.fail()
    assert (failed.failure, failed.verdict.failure_class) == (DOWN, FailureClass.UNAVAILABLE)


async def test_an_open_circuit_refuses_at_once_and_nothing_is_called(bench: Bench) -> None:
    """BREAK-2."""
    await bench.open()
    with pytest.raises(ProviderUnavailable) as refused:
        await bench.call()
    assert (refused.value.provider_name, refused.value.retry_after_s) == (P.provider, 30.0)
    assert bench.provider.calls == 2
    assert bench.places_in_use == 0


async def test_failures_that_say_nothing_about_the_provider_do_not_open_it(bench: Bench) -> None:
    """BREAK-1, CLASS."""
    for _ in range(5):
        await bench.fail(REJECTED)
    assert bench.status is CircuitStatus.CLOSED


async def test_a_circuit_that_opens_while_a_call_waits_for_its_place_refuses_it() -> None:
    """BREAK-2: circuit, place, circuit again."""
    bench = Bench(limit=1, threshold=1)
    bench.provider.holds()
    first = asyncio.create_task(bench.call())
    await bench.provider.reached.wait()
    second = asyncio.create_task(bench.call())
    await asyncio.sleep(0)
    bench.provider.fails(DOWN)
    bench.provider.gate.set()
    with pytest.raises(CallFailed):
        await first
    with pytest.raises(ProviderUnavailable):
        await second
    assert (bench.provider.calls, bench.places_in_use) == (1, 0)


class TestCache:
    """BREAK-3: the gate stands outside of the response cache."""

    async def test_a_kept_reply_answers_without_a_call(self, bench: Bench) -> None:
        assert await bench.call(b"key") is REPLY
        assert bench.hits == []
        assert await bench.call(b"key") is REPLY
        assert (bench.hits, bench.provider.calls) == ([REPLY], 1)

    async def test_an_open_circuit_blocks_a_reply_that_is_kept(self, bench: Bench) -> None:
        await bench.call(b"key")
        await bench.open()
        with pytest.raises(ProviderUnavailable):
            await bench.call(b"key")
        assert bench.hits == []
        bench.clock.pass_(30.0)
        assert await bench.call() is REPLY
        await bench.call(b"key")
        assert bench.hits == [REPLY], "closed, the hit answers"

    async def test_a_hit_is_no_proof_of_health(self, bench: Bench) -> None:
        """No call was made, so the circuit learns nothing, and its probe stays to be had."""
        await bench.call(b"key")
        await bench.open()
        bench.clock.pass_(30.0)
        await bench.call(b"key")
        assert bench.status is CircuitStatus.HALF_OPEN
        assert await bench.call() is REPLY

    async def test_a_failure_is_not_kept(self, bench: Bench) -> None:
        bench.provider.fails(REJECTED)
        with pytest.raises(CallFailed):
            await bench.call(b"key")
        bench.provider.outcome = REPLY
        await bench.call(b"key")
        assert bench.provider.calls == 2

    async def test_who_does_not_ask_for_it_gets_no_kept_reply(self, bench: Bench) -> None:
        await bench.call(b"key")
        await bench.call()
        assert bench.provider.calls == 2


class TestProbe:
    """BREAK-2, BREAK-4: who may try a circuit after its break."""

    async def test_of_many_that_come_at_once_one_tries(self, bench: Bench) -> None:
        await bench.open()
        bench.clock.pass_(30.0)
        bench.provider.holds()
        calls = [asyncio.create_task(bench.call()) for _ in range(10)]
        await bench.provider.reached.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        assert bench.provider.calls == 3
        bench.provider.gate.set()
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        refused = [outcome for outcome in outcomes if isinstance(outcome, ProviderUnavailable)]
        assert [one.retry_after_s for one in refused] == [1.0] * 9
        assert outcomes.count(REPLY) == 1

    @pytest.mark.parametrize(
        "broken_by",
        [asyncio.CancelledError(), MemoryError(), ModelCallError(REJECTED)],
        ids=["cancelled", "crashed", "rejected"],
    )
    async def test_one_that_says_nothing_frees_the_place_of_the_probe(
        self, bench: Bench, broken_by: BaseException
    ) -> None:
        await bench.open()
        bench.clock.pass_(30.0)
        bench.provider.outcome = broken_by
        with pytest.raises((asyncio.CancelledError, MemoryError, CallFailed)):
            await bench.call()
        assert bench.status is CircuitStatus.HALF_OPEN
        bench.provider.outcome = REPLY
        assert await bench.call() is REPLY
        assert bench.circuits.health(P).circuit is CircuitStatus.CLOSED

    async def test_a_task_that_is_cancelled_while_it_tries_frees_it(self, bench: Bench) -> None:
        await bench.open()
        bench.clock.pass_(30.0)
        bench.provider.holds()
        probing = asyncio.create_task(bench.call())
        await bench.provider.reached.wait()
        probing.cancel()
        await asyncio.wait([probing])
        bench.provider.gate.set()
        assert await bench.call() is REPLY
        assert bench.places_in_use == 0

    async def test_one_that_hangs_makes_room_for_another_and_may_still_answer(self, bench: Bench) -> None:
        """BREAK-2: a provider that takes calls and never answers must not hold the circuit for ever."""
        await bench.open()
        bench.clock.pass_(30.0)
        bench.provider.holds()
        hanging = asyncio.create_task(bench.call())
        await bench.provider.reached.wait()
        bench.clock.pass_(29.0)
        with pytest.raises(ProviderUnavailable):
            bench.circuits.check(P)
        bench.clock.pass_(1.0)
        bench.circuits.check(P)
        bench.provider.gate.set()
        assert await hanging is REPLY
        assert bench.status is CircuitStatus.CLOSED

    async def test_a_failed_one_opens_it_again(self, bench: Bench) -> None:
        await bench.open()
        bench.clock.pass_(30.0)
        await bench.fail()
        assert bench.status is CircuitStatus.OPEN


async def test_a_cancelled_call_counts_for_nothing(bench: Bench) -> None:
    """CLASS: `cancelled`; C14: neither a failure nor a success."""
    await bench.fail()
    bench.provider.outcome = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await bench.call()
    assert bench.circuits.health(P).consecutive_failures == 1
    assert bench.places_in_use == 0


class TestSilence:
    """CLASS-2, BREAK-1: who cancels a silent call says what that silence was."""

    async def end_in_silence(self, bench: Bench, told: CallFailure | None) -> asyncio.CancelledError:
        bench.provider.outcome = StillSilent()
        with pytest.raises(asyncio.CancelledError) as ended:
            await bench.gate.call(P, bench.provider, overdue=lambda: told)
        return ended.value

    async def test_one_that_was_out_of_time_counts(self, bench: Bench) -> None:
        for _ in range(2):
            overdue = await self.end_in_silence(bench, SILENT)
            assert isinstance(overdue, CallOverdue)
            assert overdue.failure is SILENT
            assert overdue.verdict.failure_class is FailureClass.UNAVAILABLE
        assert bench.status is CircuitStatus.OPEN
        assert bench.places_in_use == 0

    async def test_one_whose_caller_left_does_not(self, bench: Bench) -> None:
        for _ in range(3):
            assert type(await self.end_in_silence(bench, None)) is asyncio.CancelledError
        assert bench.circuits.health(P).consecutive_failures == 0

    async def test_one_that_had_begun_to_answer_is_not_asked_about(self, bench: Bench) -> None:
        bench.provider.outcome = asyncio.CancelledError()
        for _ in range(3):
            with pytest.raises(asyncio.CancelledError):
                await bench.gate.call(P, bench.provider, overdue=lambda: SILENT)
        assert bench.circuits.health(P).consecutive_failures == 0

    async def test_a_silent_probe_that_was_out_of_time_opens_the_circuit_again(self, bench: Bench) -> None:
        """BREAK-2."""
        await bench.open()
        bench.clock.pass_(30.0)
        await self.end_in_silence(bench, SILENT)
        assert bench.status is CircuitStatus.OPEN


async def test_an_adapter_that_crashes_counts_for_nothing_and_is_not_hidden(bench: Bench) -> None:
    bench.provider.outcome = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError):
        await bench.call()
    assert bench.circuits.health(P).consecutive_failures == 0
    assert bench.places_in_use == 0


@pytest.mark.parametrize(("limit", "runs"), [(None, False), (1, True)], ids=["unlimited", "limited"])
async def test_without_a_limit_nothing_is_done_for_concurrency(limit: int | None, runs: bool) -> None:
    """CONC-1: none of it runs, so nothing of it is allocated."""
    bench = Bench(limit)
    await bench.call()  # whatever is made once is made
    ran: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        ran.add(Path(frame.f_code.co_filename).name)

    sys.setprofile(note)
    try:
        await bench.call()
    finally:
        sys.setprofile(None)
    assert "gate.py" in ran
    assert ("places.py" in ran) == runs
