"""Where API keys are kept: making, finding, listing and revoking them."""

from collections.abc import Iterable
from datetime import timedelta
from uuid import UUID, uuid4

import asyncpg

from app.db.pool import translated
from app.keys.key import ApiKey, Scope, UsableKey, digest_of, new_secret, prefix_of
from app.keys.sql import sql
from domain.errors import NotFound


class KeyNotFound(NotFound):
    """No key of this tenant has this id or prefix."""

    code = "key_not_found"

    def __init__(self, which: str) -> None:
        super().__init__(f"there is no key {which}")


class KeyStore:
    """Every method raises StoreUnavailable. A `tenant` of None means any tenant's."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def create(
        self, tenant: str, name: str, scopes: Iterable[Scope], *, expires_in_s: float | None = None
    ) -> tuple[ApiKey, str]:
        """A new key and its secret, which nobody can be told again."""
        secret = new_secret()
        with translated():
            [row] = await self._pool.fetch(
                sql("create"),
                uuid4(),
                tenant,
                name,
                prefix_of(secret),
                digest_of(secret),
                sorted(set(scopes)),
                None if expires_in_s is None else timedelta(seconds=expires_in_s),
            )
        return _key_from(row), secret

    async def usable(self, prefix: str) -> UsableKey | None:
        """The key that is found by this prefix, unless it was revoked or has expired."""
        with translated():
            row = await self._pool.fetchrow(sql("usable"), prefix)
        if row is None:
            return None
        return UsableKey(
            id=row["key_id"],
            tenant=row["tenant_id"],
            scopes=frozenset(map(Scope, row["scopes"])),
            digest=row["digest"],
            expires_in_s=row["expires_in_s"],
        )

    async def list(self, tenant: str | None, *, skip: int, take: int) -> list[ApiKey]:
        """Newest first, revoked ones too."""
        with translated():
            rows = await self._pool.fetch(sql("list"), tenant, skip, take)
        return [_key_from(row) for row in rows]

    async def revoke(self, tenant: str | None, which: str) -> ApiKey:
        """By id or prefix. Raise KeyNotFound. A host that has just seen it may still take it for a while."""
        if not which.isprintable():
            raise KeyNotFound(ascii(which))  # Postgres would not even take some of these for text
        with translated():
            row = await self._pool.fetchrow(sql("revoke"), _as_id(which), which, tenant)
        if row is None:
            raise KeyNotFound(which)
        return _key_from(row)

    async def note_use(self, key_ids: Iterable[UUID]) -> None:
        """These keys were used just now."""
        with translated():
            await self._pool.execute(sql("note_use"), list(key_ids))


def _key_from(row: asyncpg.Record) -> ApiKey:
    return ApiKey(
        id=row["key_id"],
        tenant=row["tenant_id"],
        name=row["name"],
        prefix=row["prefix"],
        scopes=tuple(map(Scope, row["scopes"])),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        last_used_at=row["last_used_at"],
    )


def _as_id(which: str) -> UUID | None:
    try:
        return UUID(which)
    except ValueError:
        return None
