"""The `agents` view: the last version of each agent that was defined over HTTP."""

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from projections.agent_record import AgentVersionRecord, version_of
from projections.base import Connection, Fact
from projections.rows import RESET_TIMEOUT_S, columns
from projections.sql import sql
from projections.values import storable


class Agents:
    name: ClassVar[str] = "agents"

    async def apply(self, conn: Connection, page: Sequence[Fact]) -> None:
        last: dict[tuple[str, str], AgentVersionRecord] = {}
        for recorded in page:
            if version := version_of(recorded):
                last[recorded.tenant, version.name] = version
        if last:
            rows = [_row_of(tenant, version) for (tenant, _), version in last.items()]
            await conn.execute(sql("upsert_agent_definitions"), *columns(rows))

    async def reset(self, conn: Connection) -> None:
        await conn.execute(sql("delete_agent_definitions"), timeout=RESET_TIMEOUT_S)


def _row_of(tenant: str, version: AgentVersionRecord) -> tuple[Any, ...]:
    """The parameters of `upsert_agent_definitions`, in its order. JSON writes a NUL as an escape."""
    written = None if version.definition is None else msgspec.json.encode(version.definition).decode()
    return (tenant, version.name, version.version, written, version.changed_at, _text(version.changed_by))


def _text(value: str | None) -> str | None:
    return None if value is None else storable(value)
