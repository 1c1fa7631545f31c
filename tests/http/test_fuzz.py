"""The service, held to its own description by requests of schemathesis's making; `make fuzz` makes more."""

from pathlib import Path

import pytest

from ops.fuzz.examples import Fuzzer
from ops.fuzz.service import ARGUMENTS, VARIABLES, crashes
from tests.cli.command import serving


@pytest.mark.timeout(150)  # drawing from a hundred schemas is a lot of work for a busy machine
def test_whatever_is_asked_is_answered_as_described(database: str, tmp_path: Path) -> None:
    """HTTP-5: no 5xx, no status, content type or body that /openapi.json does not have."""
    log = tmp_path / "log"
    with serving(*ARGUMENTS, "--dsn", database, log=log, **VARIABLES) as service:
        found = Fuzzer(service.url, seed=1, of_each=1).ask(1)
    assert found.faults == {}
    assert crashes(log) == []
    assert found.asked > len(found.operations)
