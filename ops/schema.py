"""Write schema.sql: what all the migrations together make, in one file to read and to diff."""

import asyncio
import re
import subprocess
import tempfile
from pathlib import Path

from app.db import embedded
from app.db.binaries import find_binaries
from app.db.migrate import migrate, sql_folder

_HEADER = "-- The schema after every migration, written by `make schema`. A test keeps the two equal.\n\n"
_NOISE = re.compile(r"^(--.*|SET .*;|SELECT pg_catalog\.set_config.*;|\\(un)?restrict .*)\n", re.MULTILINE)


async def dump(dsn: str) -> str:
    """The schema of a database as pg_dump tells it, without the table that records the migrations."""
    pg_dump = find_binaries().folder / "pg_dump"
    command = [str(pg_dump), "--schema-only", "--no-owner", "--exclude-table=schema_migrations", dsn]
    told = await asyncio.to_thread(subprocess.check_output, command, text=True)
    return re.sub(r"\n{3,}", "\n\n", _NOISE.sub("", told)).strip() + "\n"


async def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        server = await embedded.start(Path(scratch) / "postgres", settings={"fsync": "off"})
        try:
            await migrate(server.dsn())
            schema = await dump(server.dsn())
        finally:
            await server.close()
    (sql_folder() / "schema.sql").write_text(_HEADER + schema)


if __name__ == "__main__":
    asyncio.run(main())
