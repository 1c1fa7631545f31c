"""What the tests of servers share."""

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A place for a server of the test's own."""
    return tmp_path / "data"
