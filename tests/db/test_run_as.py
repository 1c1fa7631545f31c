"""Postgres under a user of its own, where the service is root; the same promises where it is not."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from app.db import embedded, run_as
from app.db.binaries import find_binaries
from app.db.errors import DatabaseUnusable
from tests.db.servers import FAST, query, start


async def test_it_starts_in_a_folder_that_nobody_else_may_enter(home: Path) -> None:
    home.mkdir(mode=0o700)
    server = await start(home / "deep" / "data")
    assert await query(server, "SELECT 1") == 1
    assert home.stat().st_mode & 0o777 == 0o700
    assert home.stat().st_uid == os.geteuid()
    assert await server.close()


async def test_it_runs_programs_that_only_root_can_reach(home: Path, tmp_path: Path) -> None:
    package = find_binaries().folder.parents[1]
    closed = tmp_path / "closed"
    for folder in (package, package.with_name(f"{package.name}.libs")):
        shutil.copytree(folder, closed / folder.name)
    closed.chmod(0o700)
    programs = closed / package.name / "pginstall" / "bin"
    server = await embedded.start(home, settings=FAST, bin_dir=programs)
    assert str(await query(server, "SELECT setting FROM pg_config WHERE name = 'BINDIR'")) == str(programs)
    assert await server.close()


async def test_a_user_namespace_does_where_capabilities_cannot_be_given(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_as, "_capabilities", lambda: ())
    possible = os.geteuid() != 0 or subprocess.run(["unshare", "--user", "true"], check=False).returncode == 0
    if not possible:
        with pytest.raises(DatabaseUnusable, match="does not run as root"):
            await start(home)
        return
    server = await start(home)
    assert await query(server, "SELECT 1") == 1
    assert await server.close()
    again = await start(home)
    assert await again.close()


async def test_root_without_an_unprivileged_user_is_told_what_to_do(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_as, "_ACCOUNTS", ())
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(DatabaseUnusable, match="start Tracon as an ordinary user"):
        await start(home)
