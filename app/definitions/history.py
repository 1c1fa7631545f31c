"""Versions of what is defined over HTTP, in the log. Nobody keeps a copy of them.

Whoever needs a definition reads its last version, one row, so every host acts on a change from the moment on
that it was recorded.
"""

from typing import Any, Generic, TypeVar, cast

import msgspec

from app.store.event_log import Change, EventLog, VersionConflict
from domain.event import Event, Recorded
from domain.versions import Define, Expected, Kind, Named, Remove, Versioned, decide, version_after

D = TypeVar("D", bound=Named)
E = TypeVar("E", bound=Event)


class Defined(msgspec.Struct, frozen=True, kw_only=True):
    """The last version, and whether the thing has just come to be."""

    recorded: Recorded[Any]
    is_new: bool = False


class DefinitionHistory(Generic[D, E]):
    """Of one kind. Every method raises StoreUnavailable."""

    def __init__(self, kind: Kind[D, E], log: EventLog) -> None:
        self._kind = kind
        self._log = log

    async def version(self, tenant: str, name: str) -> Versioned[D]:
        """What was said last; version 0 where nothing was."""
        return self._version_at(await self._log.read_last(self._kind.stream(tenant, name)))

    async def all_versions(self, tenant: str, name: str) -> list[Recorded[E]]:
        """Oldest first. Raise the kind's NotFound for what was never defined."""
        recorded = await self._log.read_stream(self._kind.stream(tenant, name))
        if not recorded:
            raise self._kind.not_found(name)
        return cast(list[Recorded[E]], recorded)

    async def execute(
        self, tenant: str, name: str, command: Define[D] | Remove, expected: Expected
    ) -> Defined:
        """Raise VersionMoved, or the kind's NotFound. What is just that already is no new version."""
        stream = self._kind.stream(tenant, name)
        while True:
            last = await self._log.read_last(stream)
            now = self._version_at(last)
            events = decide(self._kind, now, command, expected)
            if not events:
                return Defined(recorded=cast(Recorded[E], last))
            change = Change(stream_id=stream, expected=now.version, tenant=tenant, events=tuple(events))
            try:
                [recorded] = await self._log.append(change)
            except VersionConflict:
                continue  # somebody else was first: see whether it is still as it was expected to be
            return Defined(recorded=recorded, is_new=now.definition is None)

    def _version_at(self, last: Recorded[Event] | None) -> Versioned[D]:
        if last is None:
            return Versioned()
        return version_after(self._kind, cast(E, last.event), last.sequence)
