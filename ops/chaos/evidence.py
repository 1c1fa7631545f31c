"""What a trial leaves behind: the log, the tools' files, the wall's account, and what clients were told."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import cast
from uuid import UUID

import asyncpg
import msgspec

from app.store.mapper import EventMapper
from domain.continuation import was_orphaned
from domain.events import (
    Event,
    Recorded,
    RunContinued,
    RunCreated,
    RunEnd,
    RunEvent,
    RunFailed,
    RunStarted,
)
from domain.evolve import fold
from domain.ids import RunId
from domain.run import Run
from ops.chaos.plan import plan_in
from ops.chaos.received import Received
from ops.chaos.wall import Called
from ops.chaos.workload import Submission

_OUTAGE = re.compile(
    r"StoreUnavailable|Connection\w*Error|CannotConnectNow|\w*ShutdownError|TimeoutError|InterfaceError|InternalClientError"
)

_GIVES_UP_STARTING = "tracon: Postgres is not available"

_RAISED = re.compile(r"^(?!Traceback|DETAIL|HINT)[A-Za-z_][\w.]*(?=:|$)", re.MULTILINE)

RUN_ENDS = RunEnd.__args__


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """An event in the log, and who wrote it."""

    recorded: Recorded[Event]
    writer: UUID | None

    @property
    def event(self) -> Event:
        return self.recorded.event

    @property
    def sequence(self) -> int:
        return self.recorded.sequence

    @property
    def at(self) -> datetime:
        return self.recorded.at


class Body(msgspec.Struct, frozen=True, kw_only=True):
    """A line of a tool: its body `began` or `ended`."""

    what: str
    tool: str
    order: str
    run_id: UUID
    call_id: str
    call_key: str
    pid: int
    at: float


class History(msgspec.Struct, frozen=True, kw_only=True):
    """One run's stream."""

    run_id: UUID
    rows: tuple[Row, ...]

    @property
    def created(self) -> RunCreated:
        return cast(RunCreated, self.rows[0].event)

    @property
    def plan(self) -> int:
        """The number of its plan. The run that a decision opens begins with all that was said before."""
        plans = (plan_in(message.content) for message in reversed(self.created.input))
        return next((plan.number for plan in plans if plan), 0)

    @property
    def started(self) -> Row | None:
        return self.first(RunStarted)

    @property
    def end(self) -> Row | None:
        return self.first(*RUN_ENDS)

    @property
    def failed(self) -> bool:
        return self.end is not None and isinstance(self.end.event, RunFailed)

    @property
    def orphaned(self) -> bool:
        """Closed because its host was gone."""
        return was_orphaned(self.folded)

    @property
    def folded(self) -> Run:
        return fold(RunId(self.run_id), (cast(RunEvent, row.event) for row in self.rows))

    @property
    def pid(self) -> int | None:
        """The process that took it."""
        started = self.started
        return int(started.event.host.split("-")[-2]) if started else None  # type: ignore[attr-defined]

    def first(self, *kinds: type[Event]) -> Row | None:
        return next((row for row in self.rows if isinstance(row.event, kinds)), None)

    def all(self, *kinds: type[Event]) -> Iterator[Row]:
        return (row for row in self.rows if isinstance(row.event, kinds))


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    streams: Mapping[UUID, tuple[Row, ...]]
    bodies: Sequence[Body] = ()
    calls: Sequence[Called] = ()
    received: Received
    submissions: Mapping[int, Submission] = {}
    callers: Mapping[int, str] = {}
    """The key that each host process showed the wall, by its pid."""
    defects: Sequence[str] = ()
    """What hosts said of themselves that none should ever have to say."""

    @property
    def runs(self) -> dict[UUID, History]:
        return {
            stream_id: History(run_id=stream_id, rows=rows)
            for stream_id, rows in self.streams.items()
            if isinstance(rows[0].event, RunCreated)
        }

    def chain_from(self, run_id: UUID) -> list[History]:
        """The run, if there is one, and those that continue it."""
        runs, found = self.runs, list[History]()
        following: UUID | None = run_id
        while following in runs:
            found.append(runs[following])
            mark = found[-1].first(RunContinued)
            following = mark.event.by if mark else None  # type: ignore[attr-defined]
        return found

    @property
    def events(self) -> int:
        return sum(map(len, self.streams.values()))


async def read_log(pool: asyncpg.Pool) -> dict[UUID, tuple[Row, ...]]:
    """Every stream."""
    mapper = EventMapper()
    rows = await pool.fetch("SELECT * FROM stored_events ORDER BY originator_id, originator_version")
    streams: dict[UUID, list[Row]] = {}
    for row in rows:
        one = Row(recorded=mapper.recorded(row), writer=row["writer_id"])
        streams.setdefault(row["originator_id"], []).append(one)
    return {stream_id: tuple(found) for stream_id, found in streams.items()}


def read_bodies(files: Sequence[Path]) -> list[Body]:
    """In the order of time. A line that a kill has cut short tells nothing that its neighbours do not."""
    lines = (line for file in files if file.exists() for line in file.read_bytes().splitlines())
    found = [body for body in map(_body_in, lines) if body]
    return sorted(found, key=lambda body: body.at)


def read_defects(files: Sequence[Path]) -> list[str]:
    """Crashes in the hosts' logs, and what is no line of a log. That the database is away is neither."""
    return [
        f"{file.stem}: {defect}"
        for file in files
        for is_log, lines in groupby(file.read_text(errors="replace").splitlines(), _is_log)
        for defect in (filter(_is_defect, lines) if is_log else _spilt(lines))
    ]


def _body_in(line: bytes) -> Body | None:
    try:
        return msgspec.json.decode(line, type=Body)
    except msgspec.MsgspecError:
        return None


def _is_log(line: str) -> bool:
    return line.startswith("{")


def _is_defect(line: str) -> bool:
    try:
        said = json.loads(line)
    except ValueError:
        return False  # a kill has cut it short
    if said["level"] not in ("ERROR", "CRITICAL") or "exc_info" not in said:
        return False
    cause = _RAISED.findall(str(said["exc_info"]))[-1:]
    return said["event"].endswith("crashed") or not cause or _OUTAGE.search(cause[0]) is None


def _spilt(lines: Iterable[str]) -> list[str]:
    """What went past the log, as one."""
    said = "\n".join(line for line in lines if not line.startswith(_GIVES_UP_STARTING)).strip()
    return [said] if said else []
