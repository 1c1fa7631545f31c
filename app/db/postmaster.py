"""Reading what a Postgres server says of itself in postmaster.pid."""

import os
from dataclasses import dataclass
from pathlib import Path

PORT = 5432
"""Names the socket file; no TCP port is opened."""

_SOCKET_DIR_LINE = 4
_STATUS_LINE = 7


@dataclass(frozen=True)
class Postmaster:
    pid: int
    socket_dir: str
    ready: bool


def find(cluster: Path) -> Postmaster | None:
    """The live server of this data directory, or None. A zombie is dead."""
    found = recorded(cluster)
    return found if found and _runs(found.pid) else None


def forget_the_dead(cluster: Path) -> None:
    """Remove the lock files of a server that is no more.

    Postgres takes a zombie, or a stranger that got the pid since, for a live rival. Backends that
    outlived their server are still noticed: Postgres finds their shared memory by the directory's inode.
    """
    found = recorded(cluster)
    if found is None or _runs(found.pid):
        return
    (cluster / "postmaster.pid").unlink(missing_ok=True)
    socket_lock = Path(found.socket_dir) / f".s.PGSQL.{PORT}.lock"
    if found.socket_dir and _first_line(socket_lock) == str(found.pid):
        socket_lock.unlink(missing_ok=True)


def recorded(cluster: Path) -> Postmaster | None:
    """What the last server wrote, dead or alive. None if it ended in good order."""
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
        pid = int(lines[0])
    except (FileNotFoundError, IndexError, ValueError):
        return None  # absent, or caught while being written
    socket_dir = lines[_SOCKET_DIR_LINE] if len(lines) > _SOCKET_DIR_LINE else ""
    ready = len(lines) > _STATUS_LINE and lines[_STATUS_LINE].strip() == "ready"
    return Postmaster(pid, socket_dir, ready)


def _first_line(path: Path) -> str:
    try:
        return path.read_text().partition("\n")[0].strip()
    except FileNotFoundError:
        return ""


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it lives, under another user
    try:
        return b"postgres" in Path(f"/proc/{pid}/cmdline").read_bytes()  # a zombie's is empty
    except OSError:
        return not Path("/proc/self/cmdline").exists()  # no procfs: believe the signal
