"""Places at a provider: who gets one, who waits, and that none is ever lost (CONC)."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.metrics import Metrics
from app.models.accounts import Account
from app.models.places import Places

P = Account("primary")


class Calls:
    """Calls that hold a place until the test lets them go."""

    def __init__(self, limit: int, tell_after_s: float = 3600.0) -> None:
        self.metrics = Metrics()
        self.places = Places(limit, self.metrics, tell_after_s)
        self.entered: list[int] = []
        self.told: list[int] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.ends: list[asyncio.Event] = []

    def begin(self, account: Account = P, error: Exception | None = None) -> int:
        number = len(self.tasks)
        end = asyncio.Event()
        self.ends.append(end)

        async def call() -> None:
            await self.places.take(account, lambda: self.told.append(number))
            try:
                self.entered.append(number)
                await end.wait()
                if error is not None:
                    raise error
            finally:
                self.places.give_back(account)

        self.tasks.append(asyncio.create_task(call()))
        return number

    async def settle(self) -> None:
        """Let every task go as far as it can."""
        for _ in range(8):
            await asyncio.sleep(0)

    async def end(self, number: int) -> None:
        """It ends when it has its place."""
        self.ends[number].set()
        await self.settle()

    async def cancel(self, number: int) -> None:
        self.tasks[number].cancel()
        await self.settle()

    def counts(self) -> tuple[float, float]:
        """In use, and waiting."""
        sample = self.metrics.registry.get_sample_value
        return (
            sample("tracon_model_places_in_use", {"provider": P.provider}) or 0.0,
            sample("tracon_model_calls_waiting", {"provider": P.provider}) or 0.0,
        )


@asynccontextmanager
async def calls(limit: int, tell_after_s: float = 3600.0) -> AsyncIterator[Calls]:
    begun = Calls(limit, tell_after_s)
    yield begun
    for end in begun.ends:
        end.set()
    await asyncio.gather(*begun.tasks, return_exceptions=True)
    assert begun.counts() == (0, 0)


async def test_calls_over_the_limit_wait_and_are_served_in_their_order() -> None:
    """CONC-1: first come, first served."""
    async with calls(2) as begun:
        for _ in range(5):
            begun.begin()
        await begun.settle()
        assert (begun.entered, begun.counts()) == ([0, 1], (2, 3))
        for number in (1, 0, 2):
            await begun.end(number)
        assert (begun.entered, begun.counts()) == ([0, 1, 2, 3, 4], (2, 0))


async def test_a_newcomer_does_not_overtake_who_waits() -> None:
    """CONC-1: also not in the moment in which a place is free and the one who waits is not awake yet."""
    async with calls(1) as begun:
        first, second = begun.begin(), begun.begin()
        await begun.settle()
        begun.ends[first].set()
        await asyncio.sleep(0)  # the place is free, its next holder not awake
        third = begun.begin()
        await begun.settle()
        assert begun.entered == [first, second]
        await begun.end(second)
        assert begun.entered == [first, second, third]


async def test_every_provider_has_its_own_places() -> None:
    """CONC-1."""
    async with calls(1) as begun:
        begun.begin(), begun.begin(Account("another"))
        await begun.settle()
        assert begun.entered == [0, 1]


async def test_a_place_is_freed_on_every_exit() -> None:
    """CONC-2; C28, C29: an answer, an error, a cancellation, and a cancelled wait."""
    async with calls(1) as begun:
        answered, failed, cancelled, waiting = (
            begun.begin(),
            begun.begin(error=ConnectionError()),
            begun.begin(),
            begun.begin(),
        )
        last = begun.begin()
        await begun.settle()
        await begun.cancel(waiting)
        await begun.end(answered)
        await begun.end(failed)
        await begun.cancel(cancelled)
        assert begun.entered == [answered, failed, cancelled, last]
        assert begun.counts() == (1, 0)


async def test_who_is_cancelled_with_the_place_in_hand_hands_it_on() -> None:
    """CONC-2: the place was given to it, and it never came to use it."""
    async with calls(1) as begun:
        first, second, third = begun.begin(), begun.begin(), begun.begin()
        await begun.settle()
        begun.ends[first].set()
        await asyncio.sleep(0)
        begun.tasks[second].cancel()
        await begun.settle()
        assert begun.entered == [first, third]


async def test_a_long_wait_is_told_once_and_a_short_one_not() -> None:
    """CONC-2."""
    async with calls(1, tell_after_s=0.0) as begun:
        first, second, third = begun.begin(), begun.begin(), begun.begin()
        async with asyncio.timeout(5):
            while len(begun.told) < 2:
                await asyncio.sleep(0)
        await begun.end(first)
        await begun.end(second)
        assert sorted(begun.told) == [second, third]
    async with calls(1) as begun:
        begun.begin(), begun.begin()
        await begun.settle()
        await begun.end(0)
        assert begun.told == []


@settings(max_examples=60, deadline=None)
@given(
    limit=st.integers(1, 3),
    deeds=st.lists(st.tuples(st.sampled_from(["begin", "end", "cancel"]), st.integers(0, 20)), max_size=25),
)
def test_whatever_happens_no_place_is_lost_and_none_is_given_twice(
    limit: int, deeds: list[tuple[str, int]]
) -> None:
    """CONC-1, CONC-2."""

    async def play() -> None:
        async with calls(limit) as begun:
            for deed, number in deeds:
                if deed == "begin":
                    begun.begin()
                elif number < len(begun.tasks) and not begun.tasks[number].done():
                    await (begun.end(number) if deed == "end" else begun.cancel(number))
                await begun.settle()
                alive = [n for n, task in enumerate(begun.tasks) if not task.done()]
                holding = [n for n in alive if n in begun.entered]
                assert holding == alive[:limit], "the eldest hold the places"
                assert begun.counts() == (len(holding), len(alive) - len(holding))

    asyncio.run(play())


@pytest.mark.parametrize("limit", [1, 7])
async def test_ten_calls_that_time_out_leave_all_places_free(limit: int) -> None:
    """CONC-2; C28."""
    async with calls(limit) as begun:
        for _ in range(10):
            begun.begin(error=TimeoutError())
        await begun.settle()
        for number in range(10):
            await begun.end(number)
        assert begun.counts() == (0, 0)
        begun.begin()
        await begun.settle()
        assert begun.entered[-1] == 10


async def test_whoever_has_a_place_is_not_told_any_more_that_it_waits_for_long() -> None:
    """CONC-2: nothing is left behind that could tell it."""
    places = Places(1, Metrics(), tell_after_s=3600.0)

    class Tell:
        def __call__(self) -> None:
            raise AssertionError("nobody waits")

    tell = Tell()
    await places.take(P, tell)
    waiting = asyncio.create_task(places.take(P, tell))
    await asyncio.sleep(0)
    gone = weakref.ref(tell)
    del tell
    places.give_back(P)
    await waiting
    gc.collect()
    assert gone() is None
