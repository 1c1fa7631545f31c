"""A host's time of day that is set while it runs, and an operator who says only what is certain."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ops.chaos.clock import Clock, library
from ops.chaos.evidence import Body
from ops.chaos.operator import truth_of
from ops.chaos.received import Resolved
from tests.chaos.forged import BODIES, CALL, PID, RUN, body
from tests.cli.command import environment

TELL = "import sys, time\nfor line in sys.stdin: print(time.time(), time.monotonic(), flush=True)"
HOUR_S = 3600.0


def test_one_process_has_the_wrong_time_of_day_for_as_long_as_somebody_says(tmp_path: Path) -> None:
    """Its monotonic clock and everybody else's time stay right. Without a C compiler, so does its own."""
    clock = Clock(tmp_path / "clock", library(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", TELL],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(clock.environment),
    ) as process:
        assert process.stdin
        assert process.stdout
        for off_by_s in (0.0, 24 * HOUR_S, -HOUR_S, 0.0):
            clock.set(off_by_s)
            process.stdin.write("?\n")
            process.stdin.flush()
            of_day, monotonic = map(float, process.stdout.readline().split())
            assert abs(monotonic - time.monotonic()) < HOUR_S / 2
            expected = off_by_s if clock.can_jump else 0.0
            assert abs(of_day - time.time() - expected) < HOUR_S / 2
        process.stdin.close()


def listed(*, fails: bool = False) -> dict[str, Any]:
    """The call as the service lists it."""
    arguments = json.dumps({"order": "7-0-0", "for_ms": 0, "fails": fails})
    return {"run_id": str(RUN), "call_id": CALL.id, "tool": CALL.name, "arguments": arguments}


def found(output: str, *, failed: bool) -> Resolved:
    return Resolved(run_id=RUN, call_id=CALL.id, output=output, failed=failed)


DONE, FAILED = found("refund 7-0-0 done", failed=False), found("refund 7-0-0 does not work", failed=True)


@pytest.mark.parametrize(
    ("bodies", "fails", "living", "truth"),
    [
        (BODIES, False, {PID}, DONE),
        (BODIES, True, {PID}, FAILED),
        (BODIES[:1], False, set(), FAILED),
        (BODIES[:1], False, {PID}, None),
        ((), False, set(), None),
        ((body("began", 5.1, call_id="another"),), False, set(), None),
    ],
    ids=[
        "it was done",
        "it failed",
        "its process died in it",
        "it may yet be done",
        "no word of it",
        "another",
    ],
)
def test_the_truth_about_a_call_is_what_the_tools_own_files_say(
    bodies: tuple[Body, ...], fails: bool, living: set[int | None], truth: Resolved | None
) -> None:
    assert truth_of(listed(fails=fails), bodies, living) == truth
