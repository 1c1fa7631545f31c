"""The secret of a key, and what is kept of it."""

import hashlib
from uuid import uuid4

import pytest

from app.keys.key import Scope, UsableKey, digest_of, is_meant_as_key, new_secret, prefix_of


def test_a_secret_has_256_random_bits_behind_a_prefix_that_finds_it() -> None:
    """HTTP-4"""
    secret = new_secret()
    prefix = prefix_of(secret)
    assert prefix is not None
    assert secret.startswith(prefix + "_")
    assert 62 ** len(secret.removeprefix(prefix + "_")) >= 2**256
    assert len({new_secret() for _ in range(100)}) == 100


def test_what_is_kept_is_the_hash_of_the_whole_secret() -> None:
    """HTTP-4"""
    secret = new_secret()
    assert digest_of(secret) == hashlib.sha256(secret.encode()).digest()
    key = UsableKey(
        id=uuid4(), tenant="acme", scopes=frozenset(Scope), digest=digest_of(secret), expires_in_s=None
    )
    assert key.opens(secret)
    assert not key.opens(secret[:-1] + ("a" if secret[-1] != "a" else "b"))
    assert not key.opens(new_secret())


@pytest.mark.parametrize("text", ["", "trc_", "sk-1234", "trc_é"])
def test_what_is_no_secret_of_ours_has_no_prefix(text: str) -> None:
    assert prefix_of(text) is None


def test_a_secret_of_another_length_is_none_of_ours() -> None:
    secret = new_secret()
    assert prefix_of(secret[:-1]) is None
    assert prefix_of(secret + "x") is None


def test_a_damaged_key_is_still_taken_for_a_key() -> None:
    assert is_meant_as_key(new_secret()[:20])
    assert not is_meant_as_key("sk-unused")
