"""What a run cannot go on without is read again while the store is away (EVENT-8)."""

import pytest

from app.db.errors import StoreUnavailable
from app.store.patience import patiently


class Away:
    """A read that finds the store away so many times."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.reads = 0

    async def read(self) -> int:
        self.reads += 1
        if self.reads <= self.times:
            raise StoreUnavailable("away")
        return self.reads


async def test_a_read_is_made_again_until_the_store_is_back() -> None:
    assert await patiently(Away(3).read, 60.0) == 4


async def test_patience_has_an_end() -> None:
    away = Away(1000)
    with pytest.raises(StoreUnavailable):
        await patiently(away.read, 0.0)
    assert 1 <= away.reads <= 2
