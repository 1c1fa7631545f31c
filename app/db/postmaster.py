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
    recorded = _recorded(cluster)
    return recorded if recorded and _runs(recorded.pid) else None


def forget_the_dead(cluster: Path) -> None:
    """Remove the lock files of a server that is a zombie.

    Postgres itself takes a zombie for a live rival, and under an init that does not reap it stays one.
    Backends that outlived it are still noticed: Postgres looks for their shared memory by the
    directory's inode.
    """
    recorded = _recorded(cluster)
    if recorded is None or _runs(recorded.pid):
        return
    (cluster / "postmaster.pid").unlink(missing_ok=True)
    socket_lock = Path(recorded.socket_dir) / f".s.PGSQL.{PORT}.lock"
    if recorded.socket_dir and _first_line(socket_lock) == str(recorded.pid):
        socket_lock.unlink(missing_ok=True)


def _recorded(cluster: Path) -> Postmaster | None:
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
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z" and b"postgres" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return not Path("/proc/self/stat").exists()  # no procfs: believe the signal
