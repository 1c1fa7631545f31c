"""What README.md shows to be copied, copied."""

import re
import subprocess
import sys

import pytest

from ops.readme import ADDRESS
from tests.cli.command import LONG_S, environment
from tests.cli.conftest import Demo
from tests.cli.test_readme import README, blocks

CURLS = [block for block in blocks("sh") if "curl " in block and not re.search(r"RUN_ID|-X PUT", block)]
"""Those that can be copied as they are, and leave the agents as they were."""
PROGRAMS = [block for block in blocks("python") if ADDRESS in block]


def called(snippet: str) -> str:
    """Where it asks, and in which way: enough to tell one from the others."""
    return re.sub(r"\W+", " ", snippet.partition("/tracon/")[2][:60]).strip()


def run(*command: str) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=LONG_S, env=environment()
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("snippet", CURLS, ids=called)
def test_a_curl_command_is_answered(demo: Demo, snippet: str) -> None:
    told = run("sh", "-ec", snippet.replace(ADDRESS, demo.service.url))
    assert told.strip()
    assert "urn:tracon:problem" not in told


@pytest.mark.parametrize("program", PROGRAMS, ids=called)
def test_a_program_prints_what_stands_below_it(demo: Demo, program: str) -> None:
    shown = re.match(r"\n```\n(.*?)^```$", README.partition(f"{program}```\n")[2], re.MULTILINE | re.DOTALL)
    assert shown, "nothing stands below it"
    assert run(sys.executable, "-W", "error", "-c", program.replace(ADDRESS, demo.service.url)) == shown[1]


def test_every_way_to_submit_is_shown_for_curl_and_for_python() -> None:
    for way in ("Idempotency-Key", "respond-async", "chat", "responses", "stream"):
        assert any(way in snippet for snippet in CURLS), way
        assert any(way in program for program in PROGRAMS), way
