"""A trial of a minute: things are broken under load, and every promise is kept."""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT

import pytest

from tests.cli.command import ROOT, environment

SEED = 71
"""Hosts killed, frozen, cut off; Postgres killed, restarted, held up; a wrong time of day; replies lost."""

SECONDS = 60


@pytest.mark.timeout(300)
async def test_a_trial_ends_clean() -> None:
    """EVENT-1 to EVENT-7, IDEM-4, IDEM-5, RECON-2, CONT-2, CONT-3, JOB-1: an oracle reads what is left.

    What it prints of a failure ends with the command that does it again.
    """
    arguments = ("--seed", str(SEED), "--minutes", f"{SECONDS / 60:g}", "--hosts", "2")
    trial = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "ops.chaos", *arguments),
        cwd=ROOT, env=environment(), stdin=DEVNULL, stdout=PIPE, stderr=STDOUT,
    )  # fmt: skip
    told = (await trial.communicate())[0].decode()
    assert trial.returncode == 0, told
    assert f"seed {SEED}" in told
