"""`tracon demo`."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from app.db import postmaster
from tests.cli.command import LONG_S, TRACON, environment, tracon


def test_the_demo_tells_its_story_without_a_terminal_in_less_than_a_minute() -> None:
    began = time.monotonic()
    done = tracon("demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "events that were received are there" in done.stdout
    assert "get_order" in done.stdout
    assert "shaky is not even called, and script answers in its place. Its circuit is open." in done.stdout
    assert "shaky answers. Its circuit is closed." in done.stdout.partition("half open")[2]
    assert "reader/summarizer sums it up for 0.0000" in done.stdout
    assert "sent back: It names no day." in done.stdout
    assert "It will come on Tuesday." in done.stdout.partition("sent back")[2]
    assert time.monotonic() - began < 60


def test_a_demo_that_is_interrupted_leaves_nothing_behind(tmp_path: Path) -> None:
    with subprocess.Popen(
        (TRACON, "demo"), stdout=subprocess.PIPE, text=True, env=environment({"TMPDIR": str(tmp_path)})
    ) as process:
        assert process.stdout is not None
        while "calls get_order" not in process.stdout.readline():
            assert process.poll() is None
        (folder,) = tmp_path.glob("tracon-demo-*")
        served = postmaster.find(folder / "data" / "cluster")
        assert served is not None
        process.terminate()
        assert process.wait(LONG_S) == 1
    assert not [*tmp_path.glob("tracon-demo-*")]
    with pytest.raises(ProcessLookupError):
        os.kill(served.pid, 0)
