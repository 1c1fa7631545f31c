"""README.md, held to what it shows."""

import re
import subprocess
from pathlib import Path

import msgspec

from app.cli.group import tracon as command_line
from app.http.routes import ROUTES
from app.settings.hints import is_struct
from app.settings.whole import Settings
from tests.cli.command import ROOT, tracon
from tests.cli.conftest import Demo

README = (ROOT / "README.md").read_text()
DIFFERS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "RUN"),
    (r'"at":"[^"]+"', '"at":"AT"'),
    (r'"host":"[^"]+"', '"host":"HOST"'),
    (r"call_[0-9a-f]{24}", "CALL"),
    (r'"call_key":"[^"]+"', '"call_key":"KEY"'),
    (r'"duration_ms":\d+', '"duration_ms":0'),
)


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
    return [text for named, text in fenced if named == language]


def first_column(heading: str) -> list[str]:
    """What stands in backticks in the first column of the table below a heading."""
    section = README.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line.split(" | ")[0] for line in section.splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def frames(text: str) -> list[str]:
    for pattern, instead in DIFFERS:
        text = re.sub(pattern, instead, text)
    return text.strip().split("\n\n")


def test_the_curl_command_prints_what_stands_below_it(demo: Demo) -> None:
    (command,) = [block for block in blocks("sh") if block.startswith("curl")]
    (shown,) = blocks("")
    here = command.replace("http://127.0.0.1:8080", demo.service.url)
    assert here != command
    done = subprocess.run(("sh", "-c", here), capture_output=True, text=True, check=True, timeout=30)
    before, left_out, after = re.split(r"\[frames (\d+ to \d+) are left out here[^\]]*\]", shown)
    first, last = map(int, left_out.split(" to "))
    printed = frames(done.stdout)
    assert frames(before) == printed[: first - 1]
    assert frames(after) == printed[last:]
    assert all('"type":"TextDelta"' in frame for frame in printed[first - 1 : last])


def test_the_agent_of_ones_own_fits_together(tmp_path: Path) -> None:
    (shop,) = blocks("python")
    assert len([line for line in shop.splitlines() if line]) <= 10
    (tmp_path / "shop.py").write_text(shop)
    (tmp_path / "tracon.toml").write_text("\n".join(blocks("toml")))
    done = tracon(
        *("check-config", "--config", str(tmp_path / "tracon.toml"), "--app", str(tmp_path / "shop.py")),
        PRIMARY_KEY="a-key",
    )
    assert done.returncode == 0, done.stderr
    assert "agents: clerk (primary/small), support (primary/small)" in done.stdout


def test_every_route_is_listed() -> None:
    assert first_column("HTTP") == [f"{route.method} {route.path}" for route in ROUTES]


def test_every_command_is_listed() -> None:
    listed = [entry.split()[1] for entry in first_column("Command line")]
    assert sorted(listed) == sorted(command_line.commands)


def test_every_setting_is_listed_or_said_to_be_without_effect() -> None:
    idle = README.partition("without effect in this build:")[2].partition("\n\n")[0]
    without_effect = set(re.findall(r"`([^`]+)`", idle))
    keys = {
        key for key in _keys() if key not in without_effect and key.partition(".")[0] not in without_effect
    }
    listed = {key for key in first_column("Settings") if not key.startswith(("providers.", "agents."))}
    assert listed == keys - {"profile", "providers", "agents"}
    assert not {key for key in without_effect if "." in key and not key.startswith("agents.")} - set(_keys())


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
