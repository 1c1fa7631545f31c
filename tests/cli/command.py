"""Running the installed `tracon` command as a user does: in a process of its own."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit

TRACON = str(Path(sys.executable).with_name("tracon"))
ROOT = Path(__file__).resolve().parents[2]
DEMO = ("--app", str(ROOT / "ops/demo/app.py"), "--config", str(ROOT / "ops/demo/tracon.toml"))
LONG_S = 40.0


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment without what would change the command's settings."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TRACON_")}
    return {**kept, "COLUMNS": "120", **(extra or {})}


def tracon(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Run a command to its end."""
    return subprocess.run(
        (TRACON, *arguments),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=LONG_S,
        env=environment(variables),
    )


class Service:
    """A running `tracon serve`."""

    def __init__(self, process: "subprocess.Popen[str]", line: str) -> None:
        self.process = process
        self.line = line
        found = re.search(r"https?://\S+", line)
        assert found, f"no URL in {line!r}"
        self.url = found[0].rstrip("/")

    def ended(self, stop: signal.Signals) -> int:
        """Send the signal and wait for the end."""
        self.process.send_signal(stop)
        return self.process.wait(LONG_S)

    def request(
        self, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """The body of the answer in JSON, which must be a success."""
        with closing(self._connection()) as connection:
            answer = self._ask(connection, path, body, "application/json", headers)
            content = answer.read()
        assert answer.status < 300, content
        return content

    def received(self, path: str, body: bytes) -> str:
        """What came of an event stream before it ended or broke."""
        received = b""
        with closing(self._connection()) as connection, suppress(HTTPException, ConnectionError):
            answer = self._ask(connection, path, body, "text/event-stream")
            while line := answer.readline():
                received += line
        return received.decode()

    def _connection(self) -> HTTPConnection:
        return HTTPConnection(urlsplit(self.url).netloc, timeout=LONG_S)

    def _ask(
        self,
        connection: HTTPConnection,
        path: str,
        body: bytes | None,
        accept: str,
        headers: Mapping[str, str] | None = None,
    ) -> HTTPResponse:
        sent = {"Accept": accept, "Content-Type": "application/json", **(headers or {})}
        connection.request("POST" if body else "GET", f"/tracon{path}", body, sent)
        return connection.getresponse()


@contextmanager
def serving(*arguments: str, log: Path, **variables: str) -> Iterator[Service]:
    """`tracon serve`, ready; killed in the end if it still runs."""
    with log.open("wb") as errors:
        process = subprocess.Popen(
            (TRACON, "serve", "--port", "0", *arguments),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment(variables),
        )
    with process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, f"the service did not start: {log.read_text()}"
            yield Service(process, line)
        finally:
            process.kill()
