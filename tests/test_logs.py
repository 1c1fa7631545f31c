"""What a log line says."""

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from app import logs

log = logging.getLogger("app.somewhere")


@pytest.fixture
def output() -> Iterator[io.StringIO]:
    """A configured log; whatever was configured before comes back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield io.StringIO()
    logging.captureWarnings(False)
    root.handlers[:] = handlers
    root.setLevel(level)


def lines(output: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.getvalue().splitlines()]


def test_a_line_is_an_object_with_the_event_and_its_fields(output: io.StringIO) -> None:
    logs.configure("info", stream=output)
    log.info("run.started", extra={"host": "h"})
    [line] = lines(output)
    assert line.pop("at").endswith("+00:00")
    assert line == {"level": "INFO", "logger": "app.somewhere", "event": "run.started", "host": "h"}


async def test_ids_come_from_the_context_and_follow_into_tasks(output: io.StringIO) -> None:
    logs.configure("info", stream=output)

    async def work() -> None:
        log.info("inner")

    with logs.about(request_id="q"):
        with logs.about(run_id="r"):
            task = asyncio.create_task(work())
        await task
        log.info("outer")
    log.info("after")
    ids = [(line["event"], line.get("request_id"), line.get("run_id")) for line in lines(output)]
    assert ids == [("inner", "q", "r"), ("outer", "q", None), ("after", None, None)]


def test_a_field_of_the_line_stands_above_the_context(output: io.StringIO) -> None:
    logs.configure("info", stream=output)
    with logs.about(run_id="context"):
        log.info("x", extra={"run_id": "own"})
    assert lines(output)[0]["run_id"] == "own"


def test_what_is_below_the_level_is_not_written(output: io.StringIO) -> None:
    logs.configure("warning", stream=output)
    log.info("quiet")
    assert output.getvalue() == ""


def test_a_crash_has_its_trace_in_its_line(output: io.StringIO) -> None:
    logs.configure("info", stream=output)
    try:
        raise LookupError("gone")
    except LookupError:
        log.exception("request.crashed")
    [line] = lines(output)
    assert "LookupError: gone" in line["exc_info"]


def test_plain_lines_are_for_eyes(output: io.StringIO) -> None:
    logs.configure("info", stream=output, as_json=False)
    with logs.about(run_id="r"):
        log.warning("run.fenced", extra={"step": 2})
    assert output.getvalue().split(" ", 1)[1] == "WARNING app.somewhere: run.fenced step=2 run_id=r\n"


def test_configuring_twice_writes_each_line_once(output: io.StringIO) -> None:
    logs.configure("info", stream=output)
    logs.configure("info", stream=output)
    log.info("once")
    assert len(lines(output)) == 1


def test_the_driver_does_not_tell_each_of_its_attempts(output: io.StringIO) -> None:
    """What waits for the store tells of it once."""
    logs.configure("info", stream=output)
    logging.getLogger("asyncpg.pool").warning("Failed to restore the pool connection floor")
    assert lines(output) == []
