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
_INHERITED = ("PATH", "TMPDIR", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")


@dataclass(frozen=True)
class DataDir:
    """A directory made ready for one server.

    The locks and the log in it are ours; `cluster` and the socket's folder belong to the user that
    Postgres runs as, and only that user and root can enter them.
    """

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


def make(path: Path) -> Path:
    """Make the directory if need be; others may pass through it and see nothing. Return its true path."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.mkdir(mode=0o711, exist_ok=True)
    return path.resolve()


def prepare(path: Path, bin_dir: Path | None = None) -> DataDir:
    """Settle what runs in a directory and as whom; the caller holds its start lock.

    Raises DatabaseUnusable. Blocks for some 50 ms.
    """
    cluster = path / "cluster"
    exists = cluster.exists()
    binaries = find_binaries(int((cluster / "PG_VERSION").read_text()) if exists else None, bin_dir)
    socket_dir = _socket_dir(path)
    owner = cluster.stat().st_uid if exists else None
    way = _settle(path, socket_dir, binaries.folder / "postgres", owner)
    return DataDir(path, binaries, way, socket_dir)


async def initdb(data_dir: DataDir, settings: Mapping[str, str], start_lock: int) -> None:
    """Make the cluster, wholly or not at all.

    Should this process die, the initdb it leaves behind holds on to the start lock until it ends, and
    what it made is thrown away by whoever comes next.
    """
    unfinished = data_dir.path / "cluster.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(mode=0o700)
    _give(unfinished, data_dir.way)
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


def _settle(path: Path, socket_dir: Path, program: Path, owner: int | None) -> run_as.Way:
    for way in run_as.ways(owner):
        _give(socket_dir, way)
        # Root that was stripped of its capabilities cannot enter what it has given away.
        ours_too = os.access(socket_dir, os.R_OK | os.W_OK | os.X_OK)
        if ours_too and run_as.works(way, program, path, socket_dir):
            return way
    raise DatabaseUnusable(
        f"Postgres does not run as root, and no other user here (postgres, nobody) can run {program} "
        f"in {path}: start Tracon as an ordinary user, or give the DSN of a server"
    )


def _socket_dir(path: Path) -> Path:
    wanted = path / "socket"
    if _is_no_socket_dir(wanted):
        name = hashlib.sha256(str(path).encode()).hexdigest()[:16]
        short = f"tracon-{os.geteuid()}-{name}"
        # A temporary folder of one's own can be deep down, too.
        folders = [Path(folder) / short for folder in (tempfile.gettempdir(), "/tmp")]  # noqa: S108
        wanted = next((folder for folder in folders if not _is_no_socket_dir(folder)), folders[0])
    wanted.mkdir(mode=0o700, exist_ok=True)
    # In a folder that all may write to, the name could have been taken by somebody.
    if wanted.is_symlink() or wanted.stat().st_mode & 0o077:
        raise DatabaseUnusable(f"{wanted}, for the socket of {path}, is not private: remove it")
    return wanted


def _is_no_socket_dir(folder: Path) -> bool:
    """Whether Postgres cannot use it: the path is too long, or would be read as two."""
    return len(f"{folder}/.s.PGSQL.{PORT}") > _LONGEST_SOCKET_PATH or "," in str(folder)


def _give(folder: Path, way: run_as.Way) -> None:
    if folder.stat().st_uid != way.uid:
        os.chown(folder, way.uid, way.gid)
