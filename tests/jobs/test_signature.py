"""Signatures of inbound requests."""

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.jobs.signature import BadSecret, is_signed, secrets_in, sign

SECRET = b"0123456789abcdef"
BODY = b'{"order": 7}'


def test_a_signature_is_of_id_time_and_body() -> None:
    """JOB-2: made here from the words of the scheme alone."""
    digest = hmac.new(SECRET, b"msg_1.1700000000." + BODY, hashlib.sha256).digest()
    expected = "v1," + base64.b64encode(digest).decode()
    assert sign(SECRET, "msg_1", 1_700_000_000, BODY) == expected


@given(
    what=st.sampled_from(["delivery", "timestamp", "body", "secret"]),
    other=st.integers(1, 10**6),
)
def test_a_signature_is_good_for_one_request_only(what: str, other: int) -> None:
    """JOB-2"""
    signature = sign(SECRET, "msg_1", 1_700_000_000, BODY)
    assert is_signed([SECRET], "msg_1", 1_700_000_000, BODY, signature)
    changed = {
        "delivery": ([SECRET], f"msg_1{other}", 1_700_000_000, BODY),
        "timestamp": ([SECRET], "msg_1", 1_700_000_000 + other, BODY),
        "body": ([SECRET], "msg_1", 1_700_000_000, BODY + str(other).encode()),
        "secret": ([SECRET + str(other).encode()], "msg_1", 1_700_000_000, BODY),
    }[what]
    assert not is_signed(*changed, signature)


def test_one_of_several_signatures_and_secrets_is_enough() -> None:
    """So that a secret can be changed while both sides are at work."""
    new = b"fedcba9876543210"
    signatures = f"v1,bm90IGl0 {sign(new, 'm', 1, BODY)} v2,else"
    assert is_signed([SECRET, new], "m", 1, BODY, signatures)
    assert not is_signed([SECRET], "m", 1, BODY, signatures)


@pytest.mark.parametrize("signatures", ["", "v1,", "v1", "v0,bm90IGl0", "garbage"])
def test_what_is_no_signature_is_none(signatures: str) -> None:
    assert not is_signed([SECRET], "m", 1, BODY, signatures)


def test_secrets_stand_one_on_a_line_plain_or_in_base64() -> None:
    encoded = "whsec_" + base64.b64encode(SECRET).decode()
    assert secrets_in(f"{encoded}\n\n  a-plain-secret-of-ours \n") == (SECRET, b"a-plain-secret-of-ours")


@pytest.mark.parametrize(
    ("text", "why"), [("", "empty"), (" \n", "empty"), ("whsec_%%%%", "base64"), ("too short", "shorter")]
)
def test_a_secret_that_is_none_is_refused(text: str, why: str) -> None:
    with pytest.raises(BadSecret, match=why):
        secrets_in(text)
