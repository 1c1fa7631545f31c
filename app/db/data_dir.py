"""The directory an embedded server lives in: whose it is, what is in it, and how it is first made."""

import asyncio
import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from app.db import run_as
from app.db.binaries import Binaries, find_binaries
from app.db.errors import DatabaseUnusable
from app.db.postmaster import PORT

_LONGEST_SOCKET_PATH = 103
_FIRST_FILE = "start.lock"
_INHERITED = ("PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


@dataclass(frozen=True)
class DataDir:
    """A directory made ready for one server. Only its owner and root can enter it."""

    path: Path
    binaries: Binaries
    way: run_as.Way
    socket_dir: Path

    @property
    def cluster(self) -> Path:
        return self.path / "cluster"

    @property
    def log(self) -> Path:
        return self.path / "postgres.log"

    def command(self, program: str, *arguments: str) -> tuple[str, ...]:
        return (*self.way.prefix, str(self.binaries.folder / program), *arguments)


def prepare(path: Path, bin_dir: Path | None = None) -> DataDir:
    """Make the directory and settle who runs in it. Raises DatabaseUnusable. Blocks for some 50 ms."""
    path = path.resolve()
    _adopt(path)
    cluster = path / "cluster"
    made = cluster.exists()
    binaries = find_binaries(int((cluster / "PG_VERSION").read_text()) if made else None, bin_dir)
    way = _settle(path, binaries.folder / "postgres", cluster.stat().st_uid if made else None)
    return DataDir(path, binaries, way, _socket_dir(path, way))


async def initdb(data_dir: DataDir, settings: Mapping[str, str], start_lock: int) -> None:
    """Make the cluster, wholly or not at all.

    Should this process die, the initdb it leaves behind holds on to the start lock until it ends, and
    what it made is thrown away by whoever comes next.
    """
    unfinished = data_dir.path / "cluster.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    arguments = [
        *("--pgdata", str(unfinished), "--username", "postgres", "--encoding", "UTF8", "--no-locale"),
        *("--auth-local", "trust", "--auth-host", "reject", "--data-checksums", "--no-instructions"),
    ]
    if settings.get("fsync") == "off":
        arguments.append("--no-sync")
    # In a thread: uvloop's own subprocesses do not take every argument.
    done = await asyncio.to_thread(
        subprocess.run,
        data_dir.command("initdb", *arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=environment(),
        cwd="/",
        pass_fds=(start_lock,),
    )
    if done.returncode != 0:
        raise DatabaseUnusable(f"initdb failed: {' '.join((done.stdout + done.stderr).split())[-2000:]}")
    unfinished.rename(data_dir.cluster)


def environment() -> dict[str, str]:
    """What a server needs of our environment. Not our keys, nor PG... variables meant for clients."""
    kept = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return kept | {"LANG": "C", "LC_ALL": "C"}


def _adopt(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    present = os.listdir(path)
    # Its owner and mode are about to change, so it had better not be somebody's home.
    if present and _FIRST_FILE not in present:
        raise DatabaseUnusable(f"{path} holds something else: name a new directory for the database")
    path.chmod(0o700)
    (path / _FIRST_FILE).touch(mode=0o600)


def _settle(path: Path, program: Path, owner: int | None) -> run_as.Way:
    for way in run_as.ways(owner):
        if path.stat().st_uid != way.uid:
            os.chown(path, way.uid, way.gid)
        if run_as.works(way, path, program):
            return way
    raise DatabaseUnusable(
        f"Postgres does not run as root, and no other user here (postgres, nobody) can run {program} "
        f"in {path}: start Tracon as an ordinary user, or give the DSN of a server"
    )


def _socket_dir(path: Path, way: run_as.Way) -> Path:
    if len(f"{path}/.s.PGSQL.{PORT}") <= _LONGEST_SOCKET_PATH and "," not in str(path):
        return path
    short = Path(tempfile.gettempdir()) / f"tracon-{hashlib.sha256(str(path).encode()).hexdigest()[:16]}"
    short.mkdir(mode=0o700, exist_ok=True)
    found = short.lstat()
    if short.is_symlink() or found.st_uid not in (os.geteuid(), way.uid):
        raise DatabaseUnusable(f"{short}, needed because {path} is too long for a socket, is somebody else's")
    if found.st_uid != way.uid:
        os.chown(short, way.uid, way.gid)
    return short
