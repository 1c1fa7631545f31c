"""What came of a kill is judged by how often each tool ran, and what a host's log says counts against it."""

from pathlib import Path

import msgspec
import pytest

from domain import events as e
from ops.chaos.evidence import Evidence, read_bodies, read_defects
from ops.chaos.oracle.kills import Rehearsal, Verdict, verdicts
from tests.chaos.forged import (
    BODIES,
    CALLED,
    COMPLETED,
    CREATED,
    INVOKING,
    ORPHANED,
    PLAN,
    REPLIED,
    RETURNED,
    STARTED,
    WHOLE,
    body,
    evidence,
    with_run,
)

KILL = Rehearsal(point="tool.body.after", nth=1, plan=PLAN.number)
OTHERS = tuple(
    body(what, at, tool=tool, call_id=f"call_{tool}", call_key=f"tk_{tool}")
    for tool in ("look", "notify")
    for what, at in (("began", 5.2), ("ended", 5.3))
)
BLOCKED = e.RunContinuationBlocked(cause=e.ContinuationBlock.OUTCOME_UNKNOWN, reason="r", remedy="r")


def judged(of: Evidence) -> Verdict:
    [verdict] = verdicts([KILL], of)
    return verdict


def wrong(of: Evidence) -> list[str]:
    """What the oracle of kills says itself; the others see calls here that a forged plan does not have."""
    return [violation.what for violation in judged(of).violations if violation.rule == "kills"]


def test_a_run_that_came_to_its_end_did_everything_once() -> None:
    """CONT-2"""
    whole = evidence(bodies=(*BODIES, *OTHERS))
    assert wrong(whole) == []
    assert (judged(whole).outcome, judged(whole).bodies["refund"]) == ("RunCompleted", 1)


@pytest.mark.parametrize(
    ("bodies", "what"),
    [
        ((*BODIES, *OTHERS, body("began", 5.4)), "refund had 2 bodies"),
        (BODIES, "notify had 0 bodies"),
        ((*BODIES, *OTHERS[2:]), "look had no body"),
    ],
)
def test_a_tool_that_ran_too_often_or_not_at_all(bodies: tuple[object, ...], what: str) -> None:
    """CONT-2, CONT-3"""
    assert what in wrong(evidence(bodies=bodies))


def test_a_run_that_is_blocked_has_a_call_that_nobody_knows_of() -> None:
    """CONT-3"""
    begun = (CREATED, STARTED, CALLED, REPLIED, INVOKING)
    assert wrong(with_run(*begun, ORPHANED, BLOCKED)) == []
    [found] = wrong(with_run(*begun, RETURNED, ORPHANED, BLOCKED))
    assert "blocked although the outcome of every call is known" in found


def test_what_any_other_check_finds_counts_too() -> None:
    assert {violation.rule for violation in judged(with_run(*WHOLE, COMPLETED)).violations} >= {"writers"}
    assert judged(evidence(defects=["host 1 ended by itself"])).violations


def test_a_crash_in_a_host_s_log_is_a_defect_and_an_outage_is_none(tmp_path: Path) -> None:
    crash = "Traceback (most recent call last):\nKeyError: 'x'"
    outage = "Traceback (most recent call last):\napp.db.errors.StoreUnavailable: Postgres is not available"
    said = [
        {"level": "INFO", "event": "run.started"},
        {"level": "ERROR", "event": "duty.failed", "exc_info": outage},
        {"level": "ERROR", "event": "duty.failed", "exc_info": crash},
        {"level": "ERROR", "event": "child crashed", "exc_info": outage},
    ]
    log = tmp_path / "host-0.log"
    log.write_text("\n".join([*(msgspec.json.encode(line).decode() for line in said), "Segmentation fault"]))
    found = read_defects([log])
    assert [what.partition(": ")[0] for what in found] == ["host-0"] * 3
    assert "KeyError" in found[0]
    assert "child crashed" in found[1]
    assert found[2].endswith("Segmentation fault")


def test_a_line_that_a_kill_has_cut_short_is_no_body(tmp_path: Path) -> None:
    file = tmp_path / "tools-0.jsonl"
    file.write_bytes(msgspec.json.encode(BODIES[0]) + b"\n" + msgspec.json.encode(BODIES[1])[:40])
    assert read_bodies([file, tmp_path / "none"]) == [BODIES[0]]
