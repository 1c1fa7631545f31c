"""What an API key is: its scopes, its row as operators see it, and its secret, which only its owner has."""

import hashlib
import re
import secrets
import string
from datetime import datetime
from enum import StrEnum
from hmac import compare_digest
from typing import Annotated
from uuid import UUID

import msgspec

_ALPHABET = string.ascii_letters + string.digits
_SECRET_LENGTH = 43
"""Of 62 letters: 256 bits."""
_START = "trc_"
_FORM = re.compile(rf"{_START}([0-9a-f]{{12}})_[A-Za-z0-9]{{{_SECRET_LENGTH}}}")

NAME_LENGTH = 200
"""Of what a key is called by its maker."""

TenantName = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9._-]{1,64}$")]


class Scope(StrEnum):
    """What a key is for. None includes another, but who may make keys (`admin`) may make one with any."""

    READ = "read"
    """Look at runs, statistics and the host."""
    RUN = "run"
    """Start runs, and cancel them."""
    OPERATE = "operate"
    """Decide what is uncertain on behalf of those who run."""
    ADMIN = "admin"
    """Make, list and revoke keys of the tenant."""


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key without its secret. `prefix` is how the secret begins."""

    id: UUID
    tenant: str
    name: str
    prefix: str
    scopes: tuple[Scope, ...]
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    last_used_at: datetime | None
    """About when; it is written once a minute."""


class UsableKey(msgspec.Struct, frozen=True, kw_only=True):
    """What admission needs of a key that is neither revoked nor expired."""

    id: UUID
    tenant: str
    scopes: frozenset[Scope]
    digest: bytes
    expires_in_s: float | None

    def opens(self, secret: str) -> bool:
        """Whether this is the key's own secret. Takes as long for a wrong one as for the right one."""
        return compare_digest(digest_of(secret), self.digest)


def new_secret() -> str:
    """A fresh one. It is shown once, and then nobody but its owner has it."""
    random = "".join(secrets.choice(_ALPHABET) for _ in range(_SECRET_LENGTH))
    return f"{_START}{secrets.token_hex(6)}_{random}"


def digest_of(secret: str) -> bytes:
    return hashlib.sha256(secret.encode()).digest()


def prefix_of(secret: str) -> str | None:
    """By what its key is found; None for what cannot be a secret of ours."""
    form = _FORM.fullmatch(secret)
    return _START + form[1] if form else None


def is_meant_as_key(text: str) -> bool:
    """Whether somebody took it for a key of ours, even a damaged one. Clients send all sorts of things."""
    return text.startswith(_START)
