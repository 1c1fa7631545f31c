"""`tracon migrate` and `tracon rebuild`."""

import pytest

from app.db.migrate import load, sql_folder
from projections.catalog import PROJECTIONS
from tests.cli.command import tracon


def test_migrate_lists_what_it_did(empty_database: str) -> None:
    first = tracon("migrate", "--dsn", empty_database)
    assert first.returncode == 0
    names = [migration.name for migration in load(sql_folder() / "migrations")]
    assert first.stdout.splitlines() == [f"applied {name}" for name in names]
    again = tracon("migrate", TRACON_DSN=empty_database)
    assert again.returncode == 0
    assert again.stdout == "nothing to apply: the database is up to date\n"


def test_a_database_that_was_never_migrated_is_one_line(empty_database: str) -> None:
    done = tracon("replay", "0197c0de-0000-7000-8000-000000000000", "--dsn", empty_database)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "tracon: the database is not Tracon's yet: `tracon migrate` makes it so\n"


@pytest.mark.parametrize("command", [("migrate",), ("rebuild", "runs")])
def test_an_unreachable_database_is_one_line(command: tuple[str, ...]) -> None:
    done = tracon(*command, "--dsn", "postgresql://nobody:secret@127.0.0.1:1/nothing")
    assert (done.returncode, done.stdout) == (1, "")
    assert len(done.stderr.splitlines()) == 1
    assert "secret" not in done.stderr


async def test_an_unknown_view_lists_those_there_are(database: str) -> None:
    done = tracon("rebuild", "rums", "--dsn", database)
    names = ", ".join(projection.name for projection in PROJECTIONS)
    said = f"tracon: there is no projection 'rums'; there are: {names}\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)
