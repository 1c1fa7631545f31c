"""README.md, held to what it shows."""

import re
from pathlib import Path

import msgspec

from app.cli.group import tracon as command_line
from app.http.routes import ROUTES
from app.settings.hints import is_struct
from app.settings.whole import Settings
from ops.readme import comparable, printed, shown
from tests.cli.command import ROOT, tracon
from tests.cli.conftest import Demo

README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [text for named, text in fenced if named == language]


def first_column(heading: str) -> list[str]:
    """What stands in backticks in the first column of the table below a heading."""
    section = README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def test_the_curl_command_prints_what_stands_below_it(demo: Demo) -> None:
    assert comparable(printed(demo.service.url)) == comparable(shown()), "`make readme` writes it anew"


def test_the_agent_of_ones_own_fits_together(tmp_path: Path) -> None:
    [shop] = [block for block in blocks("python") if "from tracon import Agent" in block]
    assert len([line for line in shop.splitlines() if line]) <= 10
    (tmp_path / "shop.py").write_text(shop)
    (tmp_path / "tracon.toml").write_text("\n".join(blocks("toml")))
    done = tracon(
        *("check-config", "--config", str(tmp_path / "tracon.toml"), "--app", str(tmp_path / "shop.py")),
        PRIMARY_KEY="a-key",
    )
    assert done.returncode == 0, done.stderr
    names = ("clerk", "editor", "support")
    assert f"agents: {', '.join(f'{name} (primary/small)' for name in names)}" in done.stdout


def test_every_route_is_listed() -> None:
    listed = [entry for entry in first_column("HTTP") if " /" in entry]
    assert listed == [f"{route.method} {route.path}" for route in ROUTES]


def test_every_command_is_listed() -> None:
    listed = [entry.split()[1] for entry in first_column("Command line")]
    assert sorted(listed) == sorted(command_line.commands)


def test_every_setting_is_listed() -> None:
    listed = {
        key.partition(".NAME")[0]
        for key in first_column("Settings")
        if not key.startswith(("providers.", "agents."))
    }
    assert listed == set(_keys()) - {"profile", "providers", "agents"}


def _keys() -> list[str]:
    keys = []
    for section in msgspec.structs.fields(Settings):
        if is_struct(section.type):
            keys += [f"{section.name}.{field.name}" for field in msgspec.structs.fields(section.type)]
        else:
            keys.append(section.name)
    return keys


def test_every_file_that_a_document_names_is_there() -> None:
    for document in (ROOT / "README.md", *ROOT.glob("ops/**/*.md")):
        named = re.findall(
            r"`((?:app|domain|projections|tests|ops)/[\w./-]*|tracon\.py)`", document.read_text()
        )
        missing = [name for name in named if not (ROOT / name).exists() and not [*ROOT.glob(f"{name}*")]]
        assert not missing, f"{document.name} names what is not there: {missing}"
