"""`tracon keys`: made, listed and revoked where no service has to run."""

import json

import asyncpg
import pytest
from click.testing import CliRunner

from app.cli.keys import keys
from tests.cli.command import tracon


def lines(text: str) -> list[str]:
    return text.splitlines()


async def test_a_key_is_printed_once_and_found_by_its_prefix(database: str, pool: asyncpg.Pool) -> None:
    """HTTP-4"""
    made = tracon(
        "keys", "create", "nightly build", "--tenant", "acme", "--expires-in", "90d", "--dsn", database
    )
    assert made.returncode == 0, made.stderr
    [secret] = lines(made.stdout)
    assert made.stderr.startswith("a key of tenant acme for read, run until ")
    listed = tracon("keys", "list", "--dsn", database)
    titles, row = lines(listed.stdout)
    assert titles.split("  ")[0] == "prefix"
    assert row.split()[:3] == [secret.rpartition("_")[0], "acme", "read,run"]
    assert row.endswith("  nightly build")
    assert secret not in listed.stdout
    assert (
        await pool.fetchval("SELECT count(*) FROM api_keys WHERE expires_at > now() + interval '89 days'")
        == 1
    )


async def test_scopes_are_those_that_are_named(database: str) -> None:
    """HTTP-4"""
    tracon("keys", "create", "ops", "--scope", "operate", "--scope", "admin", "--dsn", database)
    [row] = lines(tracon("keys", "list", "--json", "--dsn", database).stdout)
    key = json.loads(row)
    assert (key["tenant"], key["scopes"], key["expires_at"]) == ("default", ["admin", "operate"], None)
    assert "digest" not in key


async def test_a_revoked_key_stays_in_the_list(database: str) -> None:
    """HTTP-4"""
    secret = tracon("keys", "create", "old", "--tenant", "acme", "--dsn", database).stdout.strip()
    prefix = secret.rpartition("_")[0]
    revoked = tracon("keys", "revoke", prefix, "--dsn", database)
    assert (revoked.returncode, revoked.stdout) == (0, f"revoked {prefix} (old) of tenant acme\n")
    [row] = lines(tracon("keys", "list", "--json", "--tenant", "acme", "--dsn", database).stdout)
    assert json.loads(row)["revoked_at"] is not None
    assert tracon("keys", "list", "--json", "--tenant", "zebra", "--dsn", database).stdout == ""


async def test_a_key_that_is_not_there_is_one_line(database: str) -> None:
    done = tracon("keys", "revoke", "trc_000000000000", "--dsn", database)
    assert (done.returncode, done.stderr) == (1, "tracon: there is no key trc_000000000000\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("x", "--tenant", "a b"), "up to 64 letters"),
        (("x", "--expires-in", "soon"), "is not a duration"),
        (("x", "--expires-in", "0"), "must be longer"),
        (("x", "--scope", "root"), "'root' is not one of"),
        (("a\tb",), "printable"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], said: str) -> None:
    nowhere = ("--dsn", "postgresql://nobody@127.0.0.1:1/nothing")
    done = CliRunner().invoke(keys, ("create", *arguments, *nowhere))
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in done.stderr
