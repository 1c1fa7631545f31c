"""A host is killed with many runs on it: each is closed, then each goes on or says why not."""

import pytest

from ops.bench.orphans import measured


@pytest.mark.timeout(120)
async def test_a_restart_of_the_database_in_the_middle_of_closing_many_runs_changes_nothing() -> None:
    """RECON-1, CONT-1, CONT-3: in pages of seven, none is closed twice, forgotten, or continued twice."""
    outcome = await measured(40, page=7, restarted=True)
    assert outcome.ends == {"orphaned": 40}
    assert outcome.verdicts == {"continued": 32, "outcome_unknown": 4, "no_session": 4}
    assert outcome.completed == 32
