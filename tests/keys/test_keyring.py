"""Letting requests in by what is remembered of their keys."""

import asyncio
from uuid import UUID

import pytest

from app.db.errors import StoreUnavailable
from app.keys.key import Scope, UsableKey, digest_of, new_secret, prefix_of
from app.keys.keyring import Keyring


class Database:
    """Answers as the real one does, counts, and can be held or be away."""

    def __init__(self) -> None:
        self.keys: dict[str, UsableKey] = {}
        self.asked: list[str] = []
        self.free = asyncio.Event()
        self.free.set()
        self.away = False

    def add(self, expires_in_s: float | None = None) -> str:
        secret = new_secret()
        self.keys[prefix(secret)] = UsableKey(
            id=UUID(int=len(self.keys)),
            tenant="acme",
            scopes=frozenset({Scope.READ}),
            digest=digest_of(secret),
            expires_in_s=expires_in_s,
        )
        return secret

    async def usable(self, prefix: str) -> UsableKey | None:
        self.asked.append(prefix)
        await self.free.wait()
        if self.away:
            raise StoreUnavailable("away")
        return self.keys.get(prefix)


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def database() -> Database:
    return Database()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def keyring(database: Database, clock: Clock) -> Keyring:
    return Keyring(database.usable, ttl_s=5.0, clock=clock)


def prefix(secret: str) -> str:
    found = prefix_of(secret)
    assert found is not None
    return found


async def test_a_key_that_was_just_seen_is_let_in_without_asking(
    database: Database, keyring: Keyring
) -> None:
    """HTTP-4"""
    secret = database.add()
    keys = [await keyring.find(secret) for _ in range(3)]
    assert [key and key.tenant for key in keys] == ["acme"] * 3
    assert len(database.asked) == 1


async def test_a_revoked_key_is_refused_once_what_is_remembered_is_old(
    database: Database, keyring: Keyring, clock: Clock
) -> None:
    """HTTP-4"""
    secret = database.add()
    assert await keyring.find(secret)
    database.keys.clear()
    clock.now = 4.9
    assert await keyring.find(secret)
    clock.now = 5.1
    assert await keyring.find(secret) is None


async def test_what_is_forgotten_is_asked_for_again(database: Database, keyring: Keyring) -> None:
    secret = database.add()
    await keyring.find(secret)
    database.keys.clear()
    keyring.forget(prefix(secret))
    assert await keyring.find(secret) is None


async def test_nothing_is_remembered_past_the_keys_own_end(
    database: Database, keyring: Keyring, clock: Clock
) -> None:
    """HTTP-4"""
    secret = database.add(expires_in_s=2.0)
    assert await keyring.find(secret)
    database.keys.clear()
    clock.now = 1.9
    assert await keyring.find(secret)
    clock.now = 2.1
    assert await keyring.find(secret) is None


async def test_the_prefix_alone_opens_nothing(database: Database, keyring: Keyring) -> None:
    """HTTP-4"""
    secret = database.add()
    other = prefix(secret) + "_" + new_secret().rpartition("_")[2]
    assert await keyring.find(secret)
    assert await keyring.find(other) is None
    assert len(database.asked) == 1


async def test_a_prefix_that_is_no_keys_is_remembered_too(
    database: Database, keyring: Keyring, clock: Clock
) -> None:
    secret = new_secret()
    assert [await keyring.find(secret) for _ in range(3)] == [None] * 3
    assert len(database.asked) == 1
    clock.now = 5.1
    await keyring.find(secret)
    assert len(database.asked) == 2


async def test_what_cannot_be_a_key_is_not_asked_about(database: Database, keyring: Keyring) -> None:
    assert await keyring.find("trc_no_key_at_all") is None
    assert database.asked == []


async def test_requests_that_come_together_ask_once_and_one_that_leaves_takes_nothing_from_the_others(
    database: Database, keyring: Keyring
) -> None:
    secret = database.add()
    database.free.clear()
    first, *others = [asyncio.create_task(keyring.find(secret)) for _ in range(5)]
    await asyncio.sleep(0)
    first.cancel()
    database.free.set()
    keys = await asyncio.gather(*others)
    assert all(keys)
    assert len(database.asked) == 1


async def test_a_key_that_cannot_be_looked_up_is_unavailable_and_not_unknown(
    database: Database, keyring: Keyring
) -> None:
    """EVENT-8"""
    secret = database.add()
    database.away = True
    with pytest.raises(StoreUnavailable):
        await keyring.find(secret)
    database.away = False
    assert await keyring.find(secret)
