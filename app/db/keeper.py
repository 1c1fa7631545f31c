"""The keeper: the process that owns a Postgres server on behalf of all who use it.

It runs apart from the service and outlives any one user. Users share a lock on one file. While any of
them lives, a server that dies is started again; when the last is gone, however it went, the lock
becomes the keeper's and the server is shut down. The lock is held until the server is down, so a
newcomer waits for that and then starts afresh.

It is started as `python -I -S`, so it sees the standard library and this package and nothing else.
"""

import fcntl
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from app.db import postmaster

_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_READY_POLL_S = 0.02
_FAST_SHUTDOWN_S = 30.0


class Keeper:
    def __init__(self, cluster: Path, command: list[str]) -> None:
        self._cluster = cluster
        self._command = command
        self._turn = threading.Lock()
        self._unused = threading.Event()
        self._server: subprocess.Popen[bytes] | None = None

    def run(self, use_lock: int) -> None:
        """Return when nobody uses the server any more, or when its very first start fails."""
        threading.Thread(target=self._stop_after_the_last_user, args=(use_lock,), daemon=True).start()
        served = False
        pause_s = _FIRST_PAUSE_S
        while server := self._start():
            if self._watch(server):
                served, pause_s = True, _FIRST_PAUSE_S
            if not served:
                return  # a wrong setting will not cure itself, and somebody waits to be told
            self._unused.wait(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    def _start(self) -> subprocess.Popen[bytes] | None:
        with self._turn:
            if self._unused.is_set():
                return None
            postmaster.forget_the_dead(self._cluster)
            # In a session of its own: Ctrl-C in the terminal is for the service, which then drains.
            self._server = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, start_new_session=True)  # noqa: S603
            return self._server

    def _watch(self, server: subprocess.Popen[bytes]) -> bool:
        """Wait for the server's end. True if it ever accepted connections."""
        while True:
            with suppress(subprocess.TimeoutExpired):
                server.wait(_READY_POLL_S)
            # Looked up also after the end: a killed server leaves its last words behind.
            said = postmaster.recorded(self._cluster)
            served = said is not None and said.pid == server.pid and said.ready
            if served:
                server.wait()
            if server.returncode is not None:
                return served

    def _stop_after_the_last_user(self, use_lock: int) -> None:
        fcntl.flock(use_lock, fcntl.LOCK_EX)
        with self._turn:
            self._unused.set()
            server = self._server
        if server is None:
            return
        server.send_signal(signal.SIGINT)
        try:
            server.wait(_FAST_SHUTDOWN_S)
        except subprocess.TimeoutExpired:
            server.send_signal(signal.SIGQUIT)


def main() -> None:
    use_lock, cluster, *command = sys.argv[1:]
    if os.fork():
        os._exit(0)  # not the service's child: it must not leave a zombie, nor be waited for
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        # A handler, not SIG_IGN: the server would inherit that across exec.
        signal.signal(ignored, lambda *_: None)
    Keeper(Path(cluster), command).run(os.open(use_lock, os.O_RDWR | os.O_NOFOLLOW))
