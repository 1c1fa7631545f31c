"""The bucket of tokens of each tenant."""

from app.http.rate_limit import RateLimiter
from app.settings import RateLimitSettings


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_passes_and_then_one_for_each_token() -> None:
    """HTTP-4"""
    clock = Clock()
    limiter = RateLimiter(RateLimitSettings(requests_per_second=2, burst=3), clock)
    assert [limiter.take("acme") for _ in range(5)] == [0, 0, 0, 0.5, 0.5]
    clock.now += 0.25
    assert limiter.take("acme") == 0.25
    clock.now += 0.25
    assert [limiter.take("acme") for _ in range(2)] == [0, 0.5]


def test_a_bucket_is_never_fuller_than_the_burst() -> None:
    clock = Clock()
    limiter = RateLimiter(RateLimitSettings(requests_per_second=2, burst=3), clock)
    limiter.take("acme")
    clock.now += 3600
    assert [limiter.take("acme") for _ in range(4)] == [0, 0, 0, 0.5]


def test_without_a_burst_of_its_own_one_seconds_worth_may_come_at_once() -> None:
    limiter = RateLimiter(RateLimitSettings(requests_per_second=2.5), Clock())
    assert [limiter.take("acme") > 0 for _ in range(4)] == [False, False, False, True]
    slow = RateLimiter(RateLimitSettings(requests_per_second=0.01), Clock())
    assert [slow.take("acme") > 0 for _ in range(2)] == [False, True]


def test_tenants_do_not_take_from_each_other() -> None:
    limiter = RateLimiter(RateLimitSettings(requests_per_second=1, burst=1), Clock())
    assert [limiter.take("acme"), limiter.take("zebra")] == [0, 0]
