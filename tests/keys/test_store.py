"""Keys in the database."""

import asyncpg
import pytest

from app.keys.key import Scope, digest_of, prefix_of
from app.keys.store import KeyNotFound, KeyStore

RUNS = (Scope.RUN, Scope.READ)


@pytest.fixture
def store(pool: asyncpg.Pool) -> KeyStore:
    return KeyStore(pool)


async def test_the_secret_is_not_in_the_database(store: KeyStore, pool: asyncpg.Pool) -> None:
    """HTTP-4: hashed."""
    _, secret = await store.create("acme", "ci", RUNS)
    [row] = await pool.fetch("SELECT * FROM api_keys")
    assert row["digest"] == digest_of(secret)
    assert all(secret not in str(value) for value in row.values())
    assert secret.rpartition("_")[2] not in str(dict(row))


async def test_a_key_is_found_by_its_prefix(store: KeyStore) -> None:
    """HTTP-4: per tenant, scoped."""
    key, secret = await store.create("acme", "ci", RUNS)
    found = await store.usable(key.prefix)
    assert found is not None
    assert (found.id, found.tenant, found.scopes) == (key.id, "acme", frozenset(RUNS))
    assert found.expires_in_s is None
    assert found.opens(secret)
    assert prefix_of(secret) == key.prefix


async def test_an_expired_key_is_not_usable_by_the_databases_clock(
    store: KeyStore, pool: asyncpg.Pool
) -> None:
    """HTTP-4: expiring."""
    key, _ = await store.create("acme", "ci", RUNS, expires_in_s=3600)
    found = await store.usable(key.prefix)
    assert found is not None
    assert found.expires_in_s is not None
    assert 3500 < found.expires_in_s <= 3600
    await pool.execute("UPDATE api_keys SET expires_at = clock_timestamp()")
    assert await store.usable(key.prefix) is None


async def test_a_revoked_key_is_not_usable_and_stays_revoked_since_the_first_time(store: KeyStore) -> None:
    """HTTP-4: revocable."""
    key, _ = await store.create("acme", "ci", RUNS)
    first = await store.revoke("acme", str(key.id))
    again = await store.revoke(None, key.prefix)
    assert first.revoked_at is not None
    assert again == first
    assert await store.usable(key.prefix) is None


@pytest.mark.parametrize("which", ["nobody", "", "a\0b", "trc_000000000000"])
async def test_what_is_not_there_cannot_be_revoked(store: KeyStore, which: str) -> None:
    await store.create("acme", "ci", RUNS)
    with pytest.raises(KeyNotFound):
        await store.revoke("acme", which)


async def test_a_tenants_keys_are_its_own(store: KeyStore) -> None:
    """HTTP-2"""
    ours, _ = await store.create("acme", "ours", RUNS)
    theirs, _ = await store.create("zebra", "theirs", RUNS)
    assert await store.list("acme", skip=0, take=10) == [ours]
    assert await store.list(None, skip=0, take=10) == [theirs, ours]
    with pytest.raises(KeyNotFound):
        await store.revoke("acme", str(theirs.id))
    assert await store.usable(theirs.prefix)


async def test_a_use_within_the_minute_is_not_written_again(store: KeyStore, pool: asyncpg.Pool) -> None:
    """HTTP-4: last used."""
    key, _ = await store.create("acme", "ci", RUNS)
    await store.note_use([key.id])
    [first] = await store.list("acme", skip=0, take=1)
    await store.note_use([key.id])
    [second] = await store.list("acme", skip=0, take=1)
    assert first.last_used_at is not None
    assert second == first
    await pool.execute("UPDATE api_keys SET last_used_at = last_used_at - interval '1 minute'")
    await store.note_use([key.id])
    [third] = await store.list("acme", skip=0, take=1)
    assert third.last_used_at is not None
    assert third.last_used_at > first.last_used_at
