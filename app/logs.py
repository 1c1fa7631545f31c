"""Logs: a JSON object per line, or plain lines on a terminal. Ids come from the context, facts are fields."""

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

from pythonjsonlogger.json import JsonFormatter

_context: ContextVar[dict[str, str] | None] = ContextVar("tracon_log_context", default=None)

# What every LogRecord has by itself; anything else on it came in through `extra` or from the context.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


@contextmanager
def about(**ids: str) -> Iterator[None]:
    """Put these ids (`run_id`, `request_id`) on every line logged in here, by tasks started in here too."""
    token = _context.set({**(_context.get() or {}), **ids})
    try:
        yield
    finally:
        _context.reset(token)


def configure(level: str = "info", *, stream: TextIO | None = None, as_json: bool | None = None) -> None:
    """Log to `stream` (standard error). `as_json` of None: plain lines on a terminal, JSON otherwise."""
    out = stream or sys.stderr
    handler = logging.StreamHandler(out)
    handler.addFilter(_add_context)
    handler.setFormatter(_plain() if as_json is False or (as_json is None and out.isatty()) else _json())
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    # The pool tells each of its own attempts, with a traceback; what waits for the store tells of it once.
    logging.getLogger("asyncpg.pool").setLevel(logging.ERROR)


def _add_context(record: logging.LogRecord) -> bool:
    for name, value in (_context.get() or {}).items():
        if not hasattr(record, name):
            setattr(record, name, value)
    return True


def _json() -> logging.Formatter:
    return JsonFormatter(
        "{levelname}{name}{message}",
        style="{",
        timestamp="at",
        rename_fields={"levelname": "level", "name": "logger", "message": "event"},
        json_ensure_ascii=False,
    )


class _Plain(logging.Formatter):
    """`12:00:00 INFO app.main: event key=value`, for eyes."""

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        fields = " ".join(f"{k}={v}" for k, v in vars(record).items() if k not in _STANDARD)
        head, newline, trace = line.partition("\n")
        return f"{head} {fields}{newline}{trace}" if fields else line


def _plain() -> logging.Formatter:
    return _Plain("%(asctime)s %(levelname)s %(name)s: %(message)s", datefmt="%H:%M:%S")
