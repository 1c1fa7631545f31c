"""On whose behalf a request is made."""

from uuid import UUID

import msgspec

from app.keys.key import Scope
from domain.ids import DEFAULT_TENANT


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """The tenant whose things a request may see, and what it may do with them."""

    tenant: str
    scopes: frozenset[Scope]
    key_id: UUID | None = None
    """The key that it came with; none for a client on this machine that sent none."""
    key_prefix: str | None = None
    """How that key begins."""


LOCAL = Principal(tenant=DEFAULT_TENANT, scopes=frozenset(Scope))
"""A client on this machine without a key: nothing is kept from it (HTTP-4)."""
