"""Files become a schema: once, in order, by whoever comes first, or not at all."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from app.db.errors import MigrationRefused, StoreUnavailable
from app.db.migrate import load, migrate, sql_folder
from app.db.pool import connect
from ops.schema import dump


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(
        tmp_path, "0001_expand_note", "CREATE TABLE note (id int PRIMARY KEY); INSERT INTO note VALUES (1);"
    )
    write(tmp_path, "0002_expand_text", "ALTER TABLE note ADD COLUMN text text NOT NULL DEFAULT 'none';")
    return tmp_path


def write(folder: Path, name: str, sql: str) -> None:
    (folder / f"{name}.sql").write_text(sql)


async def query(dsn: str, sql: str) -> list[tuple[object, ...]]:
    connection = await connect(dsn)
    try:
        return [tuple(row) for row in await connection.fetch(sql)]
    finally:
        await connection.close()


async def applied(dsn: str) -> list[object]:
    return [row[0] for row in await query(dsn, "SELECT name FROM schema_migrations ORDER BY name")]


async def test_files_are_applied_in_order_and_once(empty_database: str, folder: Path) -> None:
    assert await migrate(empty_database, folder) == ["0001_expand_note", "0002_expand_text"]
    assert await migrate(empty_database, folder) == []
    assert await query(empty_database, "SELECT * FROM note") == [(1, "none")]


async def test_eight_processes_at_once_apply_each_file_once(empty_database: str, folder: Path) -> None:
    for number in range(3, 9):
        write(folder, f"000{number}_expand_more", f"INSERT INTO note VALUES ({number});")
    script = (
        "import asyncio, pathlib, sys; from app.db.migrate import migrate; "
        "print(*asyncio.run(migrate(sys.argv[1], pathlib.Path(sys.argv[2]))))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", script, empty_database, str(folder)], stdout=subprocess.PIPE, text=True
        )
        for _ in range(8)
    ]
    outputs = await asyncio.to_thread(lambda: [process.communicate()[0] for process in processes])
    assert [process.returncode for process in processes] == [0] * 8
    assert sorted(name for output in outputs for name in output.split()) == await applied(empty_database)
    assert await query(empty_database, "SELECT count(*) FROM note") == [(7,)]


async def test_a_file_that_fails_leaves_nothing_behind(empty_database: str, folder: Path) -> None:
    write(folder, "0003_expand_broken", "INSERT INTO note VALUES (2); INSERT INTO note VALUES (2);")
    with pytest.raises(MigrationRefused, match=r"0003_expand_broken\.sql failed, and changed nothing"):
        await migrate(empty_database, folder)
    assert await applied(empty_database) == ["0001_expand_note", "0002_expand_text"]
    assert await query(empty_database, "SELECT id FROM note") == [(1,)]


async def test_an_applied_file_that_was_edited_is_refused_by_name(empty_database: str, folder: Path) -> None:
    await migrate(empty_database, folder)
    write(folder, "0001_expand_note", "CREATE TABLE note (id bigint PRIMARY KEY);")
    with pytest.raises(MigrationRefused, match=r"0001_expand_note\.sql was changed after it was applied"):
        await migrate(empty_database, folder)


async def test_a_file_put_in_before_applied_ones_is_refused(empty_database: str, folder: Path) -> None:
    await migrate(empty_database, folder)
    write(folder, "0001_expand_late", "SELECT 1;")
    (folder / "0001_expand_note.sql").rename(folder / "0000_expand_note.sql")
    with pytest.raises(MigrationRefused):
        await migrate(empty_database, folder)


async def test_a_database_that_an_unknown_contract_went_over_is_refused(
    empty_database: str, folder: Path
) -> None:
    write(folder, "0003_contract_text", "ALTER TABLE note DROP COLUMN text;")
    await migrate(empty_database, folder)
    (folder / "0003_contract_text.sql").unlink()
    with pytest.raises(MigrationRefused, match="has 0003_contract_text, which this build does not"):
        await migrate(empty_database, folder)


async def test_an_older_build_goes_on_beside_an_unknown_expand(empty_database: str, folder: Path) -> None:
    write(folder, "0003_expand_more", "ALTER TABLE note ADD COLUMN more text;")
    await migrate(empty_database, folder)
    (folder / "0003_expand_more.sql").unlink()
    assert await migrate(empty_database, folder) == []


async def test_a_build_of_another_branch_is_refused(empty_database: str, folder: Path) -> None:
    write(folder, "0003_expand_theirs", "ALTER TABLE note ADD COLUMN theirs text;")
    await migrate(empty_database, folder)
    (folder / "0003_expand_theirs.sql").unlink()
    write(folder, "0004_expand_ours", "ALTER TABLE note ADD COLUMN ours text;")
    with pytest.raises(MigrationRefused, match="has 0003_expand_theirs"):
        await migrate(empty_database, folder)
    assert await applied(empty_database) == ["0001_expand_note", "0002_expand_text", "0003_expand_theirs"]


@pytest.mark.parametrize("name", ["1_expand_x", "0003_x", "0003_shrink_x", "0003_expand_X", "0003_expand_"])
def test_a_misnamed_file_is_refused(folder: Path, name: str) -> None:
    write(folder, name, "SELECT 1;")
    with pytest.raises(MigrationRefused, match=f"{name}.sql is not named"):
        load(folder)


def test_two_files_with_one_number_are_refused(folder: Path) -> None:
    write(folder, "0002_expand_other", "SELECT 1;")
    with pytest.raises(MigrationRefused, match="0002_expand_other and 0002_expand_text have the same number"):
        load(folder)


async def test_a_database_that_is_away_is_unavailable(folder: Path) -> None:
    with pytest.raises(StoreUnavailable):
        await migrate("postgresql://postgres@127.0.0.1:1/none", folder)


async def test_the_migrations_make_what_the_schema_file_says(database: str, empty_database: str) -> None:
    connection = await connect(empty_database)
    await connection.execute((sql_folder() / "schema.sql").read_text())
    await connection.close()
    assert await dump(database) == await dump(empty_database), "run `make schema`"
