"""`tracon demo`."""

import time

from tests.cli.command import tracon


def test_the_demo_tells_its_story_without_a_terminal_in_less_than_a_minute() -> None:
    began = time.monotonic()
    done = tracon("demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    assert "events that were received are there" in done.stdout
    assert "get_order" in done.stdout
    assert time.monotonic() - began < 60
