"""Bringing a database to the schema of this build, from numbered files of plain SQL.

`NNNN_expand_name.sql` may be applied while older builds still run; `NNNN_contract_name.sql` only when
they are gone. Each file is one transaction, so it cannot hold statements that refuse to be in one.
Any number of hosts may start at once: one applies a file while the others wait.
"""

import hashlib
import itertools
import logging
import re
from dataclasses import dataclass
from pathlib import Path

import asyncpg

from app.db.errors import MigrationRefused
from app.db.pool import connect, translated

log = logging.getLogger(__name__)

_NAME = re.compile(r"(\d{4})_(expand|contract)_[a-z0-9_]+")
_LOCK = 0x7472_6163_6F6E
"""The letters of "tracon"."""

_CREATE_TABLE = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    name       text        PRIMARY KEY,
    checksum   text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
)
"""


@dataclass(frozen=True)
class Migration:
    name: str
    sql: str
    checksum: str

    @property
    def number(self) -> str:
        return self.name[:4]


async def migrate(dsn: str, folder: Path | None = None) -> list[str]:
    """Apply what is missing, in order, and return the names of what this call applied.

    Raises MigrationRefused if the database is not one that this build can take further, or a file
    fails (those before it stay applied); StoreUnavailable if it cannot be reached.
    """
    known = load(folder or sql_folder() / "migrations")
    # A large table takes as long as it takes, and so does waiting for another host to be through with it.
    connection = await connect(dsn, command_timeout_s=None)
    try:
        done: list[str] = []
        with translated():
            while name := await _apply_next(connection, known):
                log.info("migration applied", extra={"migration": name})
                done.append(name)
        return done
    finally:
        await connection.close()


def sql_folder() -> Path:
    """Where the SQL is: inside an installed package, or in the source tree beside it."""
    package = Path(__file__).resolve().parents[1]
    packaged = package / "_ops"
    return packaged if packaged.exists() else package.parent / "ops"


def load(folder: Path) -> list[Migration]:
    """The migrations of a folder in their order. Raises MigrationRefused for a misnamed one."""
    migrations = [_read(path) for path in sorted(folder.glob("*.sql"))]
    for earlier, later in itertools.pairwise(migrations):
        if earlier.number == later.number:
            raise MigrationRefused(f"{earlier.name} and {later.name} have the same number")
    return migrations


def pending(known: list[Migration], applied: dict[str, str]) -> list[Migration]:
    """What of `known` is still to be applied, given the checksum of each that was. May refuse."""
    for migration in known:
        if applied.get(migration.name, migration.checksum) != migration.checksum:
            raise MigrationRefused(
                f"{migration.name}.sql was changed after it was applied: restore it, add a new file"
            )
    missing = [migration for migration in known if migration.name not in applied]
    unknown = sorted(applied.keys() - {migration.name for migration in known})
    if unknown and (missing or not all(_may_run_under_older_builds(name) for name in unknown)):
        raise MigrationRefused(
            f"the database has {unknown[-1]}, which this build does not: run a newer build"
        )
    if missing and applied and missing[0].name < max(applied):
        raise MigrationRefused(
            f"{missing[0].name} comes before {max(applied)}, which is applied: renumber it"
        )
    return missing


async def _apply_next(connection: asyncpg.Connection, known: list[Migration]) -> str | None:
    async with connection.transaction():
        # Held to the end of the transaction, so that it works through a pooler too.
        await connection.execute("SELECT pg_advisory_xact_lock($1)", _LOCK)
        await connection.execute(_CREATE_TABLE)
        rows = await connection.fetch("SELECT name, checksum FROM schema_migrations")
        missing = pending(known, {row["name"]: row["checksum"] for row in rows})
        if not missing:
            return None
        await _apply(connection, missing[0])
        return missing[0].name


async def _apply(connection: asyncpg.Connection, migration: Migration) -> None:
    try:
        with translated():
            await connection.execute(migration.sql)
    except asyncpg.PostgresError as error:
        raise MigrationRefused(f"{migration.name}.sql failed, and changed nothing: {error}") from error
    await connection.execute(
        "INSERT INTO schema_migrations (name, checksum) VALUES ($1, $2)", migration.name, migration.checksum
    )


def _may_run_under_older_builds(name: str) -> bool:
    match = _NAME.fullmatch(name)
    return match is not None and match[2] == "expand"


def _read(path: Path) -> Migration:
    if not _NAME.fullmatch(path.stem):
        raise MigrationRefused(f"{path.name} is not named NNNN_expand_name.sql or NNNN_contract_name.sql")
    content = path.read_bytes()
    return Migration(path.stem, content.decode(), hashlib.sha256(content).hexdigest())
