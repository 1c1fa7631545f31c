"""The service under test, and one of everything in it."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import requests

from ops.fuzz.known import Known

HERE = Path(__file__).parent
ARGUMENTS = ("--app", str(HERE / "application.py"), "--config", str(HERE / "tracon.toml"))
VARIABLES = {"FUZZ_SECRET": "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}

ANSWERS_WITHIN_S = 30.0
_SHOWN_WITHIN_S = 15.0

_FIELDS: Mapping[str, tuple[Any, ...]] = {
    "agent": ("echo", "clerk"),
    "model": ("echo", "clerk", "parrot"),
    "provider": ("script",),
    "cron": ("0 3 * * *", "*/5 * * * 1-5"),
    "time_zone": ("Europe/Berlin", "UTC"),
    "message": ("hello", "Größe \U0001f600", " x "),
    "messages": ([{"role": "user", "content": "hello"}],),
    "input": ("hello", [{"role": "user", "content": "hello"}]),
    "items": ([{"message": "one"}, {"message": "two", "session_id": "s"}],),
    "queue": ({}, {"lane": "bulk", "priority": 3}),
    "stream": (False, True),
    "kind": ("sequential", "concurrent"),
    "nodes": ([{"name": "look", "agent": "echo"}],),
    "decision": ("approve", "reject"),
    "answer": ("yes", "no"),
}
"""What means something in a body. Drawn by chance, nothing ever would."""

_ECHO = "/tracon/api/agents/echo/run"
_LATER = {"Prefer": "respond-async"}
_MANY = range(8)
"""Of what can be removed: some of it is there to the end."""


class _Made(NamedTuple):
    """Something to be there. What the answer to it names is known as of `collection`."""

    path: str
    body: object
    headers: Mapping[str, str] = {}
    method: str = "POST"
    collection: str = ""


def _furniture() -> Iterator[_Made]:
    yield _Made(_ECHO, {"message": "hello", "session_id": "s"}, {"Idempotency-Key": "ticket-1"})
    yield _Made(_ECHO, {"message": "later"}, _LATER)
    for agent in ("clerk", "returns", "returns", "broken"):
        yield _Made(f"/tracon/api/agents/{agent}/run", {"message": "what is it?"})
    for _ in range(3):
        yield _Made(
            "/tracon/api/workflows/reply/run", {"message": "x"}, collection="/tracon/api/workflows/runs"
        )
    yield _Made("/tracon/api/keys", {"name": "spare"})
    yield _Made("/tracon/api/batches", {"agent": "echo", "items": [{"message": "one"}, {"message": "two"}]})
    look = {"kind": "sequential", "nodes": [{"name": "look", "agent": "echo"}]}
    for number in _MANY:
        yield _Made(f"/tracon/api/workflows/look-{number}", look, method="PUT")
        asked = {"name": f"nightly-{number}", "agent": "echo", "message": "hello", "cron": "0 3 * * *"}
        yield _Made("/tracon/api/schedules", asked)
        yield _Made(
            f"/tracon/api/agents/greeter-{number}", {"provider": "script", "model": "parrot"}, method="PUT"
        )
    yield _Made("/tracon/v1/responses", {"model": "clerk", "input": "what is it?"})
    yield _Made("/tracon/v1/conversations", {})


_LISTS = ("agents", "runs", "tools", "keys", "idempotency", "jobs", "schedules", "approvals", "workflows")


def furnish(url: str, session: requests.Session) -> Known:
    """Make one of everything, and return what there is once the lists show it."""
    known = Known(_FIELDS)
    for made in _furniture():
        headers = {"Accept": "application/json", **made.headers}
        options: dict[str, Any] = {"json": made.body, "headers": headers, "timeout": ANSWERS_WITHIN_S}
        answer = session.request(made.method, url + made.path, **options)
        known.learn(made.collection or made.path, answer.json())
    for name in _LISTS:
        known.learn(f"/tracon/api/{name}", _shown(f"{url}/tracon/api/{name}", session))
    known.learn("/tracon/v1/models", session.get(f"{url}/tracon/v1/models", timeout=ANSWERS_WITHIN_S).json())
    return known


def _shown(url: str, session: requests.Session) -> Any:
    """The list as soon as it has something. Views come a little after the facts."""
    deadline = time.monotonic() + _SHOWN_WITHIN_S
    while time.monotonic() < deadline:
        answer = session.get(url, timeout=ANSWERS_WITHIN_S).json()
        if any(isinstance(value, list) and value for value in answer.values()):
            return answer
        time.sleep(0.05)
    raise TimeoutError(f"{url} shows nothing")


def crashes(log: Path) -> list[str]:
    """What the service itself takes for a defect, by its log."""
    return [line for line in log.read_text().splitlines() if '"ERROR"' in line or "crashed" in line]
