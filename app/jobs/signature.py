"""Signatures of inbound requests, in the manner of Standard Webhooks.

What is signed is `ID.TIMESTAMP.BODY`, with HMAC-SHA256 and a secret that both sides know. The id is signed
too: who repeats an old request cannot pass it off as another.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Sequence

_VERSION = "v1"
_PREFIX = "whsec_"
SHORTEST_SECRET = 16


class BadSecret(ValueError):
    """It is no secret that anybody should rely on."""


def secrets_in(text: str) -> tuple[bytes, ...]:
    """One secret for each line, so that a new one can be in force beside the old. Raise BadSecret."""
    secrets = tuple(_secret(line.strip()) for line in text.splitlines() if line.strip())
    if not secrets:
        raise BadSecret("is empty")
    return secrets


def sign(secret: bytes, delivery: str, timestamp: int, body: bytes) -> str:
    """The signature as it stands in the header."""
    signed = b"%b.%d.%b" % (delivery.encode(), timestamp, body)
    digest = hmac.digest(secret, signed, hashlib.sha256)
    return f"{_VERSION},{base64.b64encode(digest).decode()}"


def is_signed(secrets: Sequence[bytes], delivery: str, timestamp: int, body: bytes, signatures: str) -> bool:
    """Whether one of the signatures, which stand apart by spaces, is one of these secrets'."""
    given = [signature.encode() for signature in signatures.split()]
    found = False
    for secret in secrets:
        expected = sign(secret, delivery, timestamp, body).encode()
        for signature in given:
            found |= hmac.compare_digest(expected, signature)
    return found


def _secret(text: str) -> bytes:
    if text.startswith(_PREFIX):
        try:
            secret = base64.b64decode(text.removeprefix(_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            raise BadSecret(f"starts with {_PREFIX} but does not go on in base64") from None
    else:
        secret = text.encode()
    if len(secret) < SHORTEST_SECRET:
        raise BadSecret(f"is shorter than {SHORTEST_SECRET} bytes")
    return secret
