"""A PostgreSQL server of our own: started for the first user, shared by all, stopped after the last.

Every user process holds a lock on `use.lock`; a keeper process owns the server and minds that lock
(see `keeper`). Starting is done by one process at a time.
"""

import asyncio
import os
import signal
import subprocess
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from app.db import data_dir as data_dirs
from app.db import postmaster, run_as
from app.db.data_dir import DataDir
from app.db.errors import DatabaseUnusable
from app.db.locks import FileLock
from app.db.postmaster import PORT, Postmaster

_POLL_S = 0.01
_STOP_S = 35.0
_LOG_LIMIT_BYTES = 16 * 1024 * 1024
_LOG_TAIL_CHARS = 2000
_SETTINGS = {
    "max_connections": "200",
    "shared_buffers": "128MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


class EmbeddedPostgres:
    """One share in a running server. The server lives until every share is closed or its process gone."""

    def __init__(self, data_dir: Path, socket_dir: Path, share: FileLock) -> None:
        self.data_dir = data_dir
        self._socket_dir = socket_dir
        self._share = share

    def dsn(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{quote(database)}?host={quote(str(self._socket_dir))}&port={PORT}"

    def connect_args(self, database: str = "postgres") -> dict[str, str | int]:
        """The same as keyword arguments of asyncpg."""
        return {"host": str(self._socket_dir), "port": PORT, "user": "postgres", "database": database}

    async def close(self) -> bool:
        """Give up this share. True if it was the last one: the server is down then."""
        self._share.close()
        deadline = time.monotonic() + _STOP_S
        with FileLock(self.data_dir / "keeper.lock") as keeper, FileLock(self.data_dir / "use.lock") as use:
            while not keeper.try_shared():
                if use.try_exclusive():
                    use.release()  # nobody else, and the keeper is about to notice
                elif use.try_shared():
                    return False
                if time.monotonic() > deadline:
                    return False
                await asyncio.sleep(_POLL_S)
            return True


async def start(
    data_dir: Path,
    *,
    settings: Mapping[str, str] = MappingProxyType({}),
    timeout_s: float = 60.0,
    bin_dir: Path | None = None,
) -> EmbeddedPostgres:
    """Start the server of this directory, or join the one that runs.

    `settings` are postgresql.conf settings; they count only if this call is the one that starts it.
    A directory that is new becomes a database. Raises DatabaseUnusable, with what the server said.
    """
    deadline = time.monotonic() + timeout_s
    path = data_dirs.make(data_dir)
    share = FileLock(path / "use.lock")
    try:
        with FileLock(path / "start.lock") as start_lock:
            await start_lock.exclusive(deadline)
            home = await asyncio.to_thread(data_dirs.prepare, path, bin_dir)
            await share.shared(deadline)  # waits while a keeper is still shutting down
            if not home.cluster.exists():
                await data_dirs.initdb(home, settings, start_lock.fd)
            socket_dir = await _serve(home, settings, deadline)
    except BaseException:
        share.close()
        raise
    return EmbeddedPostgres(path, socket_dir, share)


async def _serve(home: DataDir, settings: Mapping[str, str], deadline: float) -> Path:
    """See to it that a keeper has a server ready, and return where its socket is."""
    while True:
        launched = await _ensure_keeper(home, settings, deadline)
        if found := await _until_ready(home, deadline):
            return Path(found.socket_dir)
        if launched:
            raise DatabaseUnusable(f"Postgres did not start; {home.log} ends: {_tail(home.log)}")
        # What we saw was a keeper's last moment, or somebody who looked whether there is one.


async def _ensure_keeper(home: DataDir, settings: Mapping[str, str], deadline: float) -> bool:
    """True if there was none and we launched it."""
    with FileLock(home.path / "keeper.lock") as keeper:
        if not keeper.try_exclusive():
            return False
        await _stop_abandoned(home.cluster, deadline)
        _launch_keeper(home, settings, keeper.fd)
        return True


async def _until_ready(home: DataDir, deadline: float) -> Postmaster | None:
    """Wait for the server to accept connections. None if its keeper is gone."""
    with FileLock(home.path / "keeper.lock") as keeper:
        while not keeper.try_shared():
            found = postmaster.find(home.cluster)
            if found and found.ready:
                return found
            if time.monotonic() > deadline:
                raise DatabaseUnusable(f"Postgres is not ready in time; {home.log} ends: {_tail(home.log)}")
            await asyncio.sleep(_POLL_S)
        return None


async def _stop_abandoned(cluster: Path, deadline: float) -> None:
    """Stop a server whose keeper was killed: nobody would restart it, nor stop it in the end."""
    while found := postmaster.find(cluster):
        with suppress(ProcessLookupError):
            os.kill(found.pid, signal.SIGINT)
        if time.monotonic() > deadline:
            raise DatabaseUnusable(f"a server without a keeper, process {found.pid}, does not stop")
        await asyncio.sleep(_POLL_S)


def _launch_keeper(home: DataDir, settings: Mapping[str, str], keeper_lock: int) -> None:
    conf = {
        "listen_addresses": "",
        "unix_socket_directories": str(home.socket_dir),
        "unix_socket_permissions": "0700",
        "port": str(PORT),
        **_SETTINGS,
        **settings,
    }
    options = [part for name, value in conf.items() for part in ("-c", f"{name}={value}")]
    server = home.command("postgres", "-D", str(home.cluster), *options)
    use_lock, cluster = str(home.path / "use.lock"), str(home.cluster)
    _turn_over(home.log)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
    with open(os.open(home.log, flags, 0o600), "ab") as log:
        subprocess.run(  # noqa: S603
            run_as.python("app.db.keeper", use_lock, cluster, *server),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=data_dirs.environment(),
            cwd="/",
            pass_fds=(keeper_lock,),
            check=True,
        )


def _turn_over(log: Path) -> None:
    if log.exists() and log.stat().st_size > _LOG_LIMIT_BYTES:
        log.replace(log.with_suffix(".log.1"))


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-_LOG_TAIL_CHARS:].strip()
