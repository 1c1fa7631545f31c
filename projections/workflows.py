"""The `workflows` view: the last version of each workflow that was defined over HTTP."""

from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from projections.base import Connection, Fact
from projections.rows import RESET_TIMEOUT_S, columns
from projections.sql import sql
from projections.values import storable
from projections.workflow_record import WorkflowVersionRecord, version_of


class Workflows:
    name: ClassVar[str] = "workflows"

    async def apply(self, conn: Connection, page: Sequence[Fact]) -> None:
        last: dict[tuple[str, str], WorkflowVersionRecord] = {}
        for recorded in page:
            if version := version_of(recorded):
                last[recorded.tenant, version.name] = version
        if last:
            rows = [_row_of(tenant, version) for (tenant, _), version in last.items()]
            await conn.execute(sql("upsert_workflow_definitions"), *columns(rows))

    async def reset(self, conn: Connection) -> None:
        await conn.execute(sql("delete_workflow_definitions"), timeout=RESET_TIMEOUT_S)


def _row_of(tenant: str, version: WorkflowVersionRecord) -> tuple[Any, ...]:
    """The parameters of `upsert_workflow_definitions`, in its order. JSON writes a NUL as an escape."""
    written = None if version.definition is None else msgspec.json.encode(version.definition).decode()
    by = None if version.changed_by is None else storable(version.changed_by)
    return (tenant, version.name, version.version, written, version.changed_at, by)
