"""The `agents` and the `workflows` view: the last version of each that was defined over HTTP."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import msgspec

from projections.base import Connection, Fact
from projections.rows import RESET_TIMEOUT_S, columns
from projections.sql import sql
from projections.values import storable
from projections.version_record import VersionRecord, agent_version_of, workflow_version_of


class _Definitions(ABC):
    """A row for each name. What a fact says of it is for a subclass to read."""

    _upsert: ClassVar[str]
    _delete: ClassVar[str]

    @staticmethod
    @abstractmethod
    def _version_of(recorded: Fact) -> VersionRecord[Any] | None:
        """None if the event is of something else."""

    async def apply(self, conn: Connection, page: Sequence[Fact]) -> None:
        last: dict[tuple[str, str], VersionRecord[Any]] = {}
        for recorded in page:
            if version := self._version_of(recorded):
                last[recorded.tenant, version.name] = version
        if last:
            rows = [_row_of(tenant, version) for (tenant, _), version in last.items()]
            await conn.execute(sql(self._upsert), *columns(rows))

    async def reset(self, conn: Connection) -> None:
        await conn.execute(sql(self._delete), timeout=RESET_TIMEOUT_S)


class Agents(_Definitions):
    name: ClassVar[str] = "agents"
    _upsert, _delete = "upsert_agent_definitions", "delete_agent_definitions"

    @staticmethod
    def _version_of(recorded: Fact) -> VersionRecord[Any] | None:
        return agent_version_of(recorded)


class Workflows(_Definitions):
    name: ClassVar[str] = "workflows"
    _upsert, _delete = "upsert_workflow_definitions", "delete_workflow_definitions"

    @staticmethod
    def _version_of(recorded: Fact) -> VersionRecord[Any] | None:
        return workflow_version_of(recorded)


def _row_of(tenant: str, version: VersionRecord[Any]) -> tuple[Any, ...]:
    """The parameters of an upsert, in its order. JSON writes a NUL as an escape."""
    written = None if version.definition is None else msgspec.json.encode(version.definition).decode()
    by = None if version.changed_by is None else storable(version.changed_by)
    return (tenant, version.name, version.version, written, version.changed_at, by)
