"""The service under test, and one of everything in it."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
}
"""What means something in a body. Drawn by chance, nothing ever would."""

_ECHO = "/tracon/api/agents/echo/run"
_FURNITURE: tuple[tuple[str, object, dict[str, str]], ...] = (
    (_ECHO, {"message": "hello", "session_id": "s"}, {"Idempotency-Key": "ticket-1"}),
    (_ECHO, {"message": "later"}, {"Prefer": "respond-async"}),
    ("/tracon/api/agents/clerk/run", {"message": "what is it?"}, {}),
    ("/tracon/api/agents/broken/run", {"message": "hello"}, {}),
    ("/tracon/api/keys", {"name": "spare"}, {}),
    ("/tracon/api/batches", {"agent": "echo", "items": [{"message": "one"}, {"message": "two"}]}, {}),
    (
        "/tracon/api/schedules",
        {"name": "nightly", "agent": "echo", "message": "hello", "cron": "0 3 * * *"},
        {},
    ),
    ("/tracon/v1/responses", {"model": "clerk", "input": "what is it?"}, {}),
    ("/tracon/v1/conversations", {}, {}),
)
_LISTS = tuple(
    f"/tracon/api/{name}" for name in ("agents", "runs", "tools", "keys", "idempotency", "jobs", "schedules")
)


def furnish(url: str, session: requests.Session) -> Known:
    """Make one of everything, and return what there is once the lists show it."""
    known = Known(_FIELDS)
    for path, body, headers in _FURNITURE:
        answer = session.post(
            url + path, json=body, headers={"Accept": "application/json", **headers}, timeout=ANSWERS_WITHIN_S
        )
        known.learn(path, answer.json())
    for path in _LISTS:
        known.learn(path, _shown(url + path, session))
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
