"""What operators are given, held to the service: alerts, the runbook, and the README's table of failures."""

import re
from pathlib import Path

import msgspec
import pytest

from app.http.routes import ROUTES
from app.metrics import Metrics
from app.settings.whole import Settings

ROOT = Path(__file__).parent.parent
README, RUNBOOK = (ROOT / "README.md").read_text(), (ROOT / "ops/runbook.md").read_text()
_SUFFIXES = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}


class Alert(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename={"for_": "for"}):
    alert: str
    expr: str
    labels: dict[str, str]
    annotations: dict[str, str]
    for_: str = "0s"


class Group(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    name: str
    rules: tuple[Alert, ...]


class Rules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    groups: tuple[Group, ...]


ALERTS = [
    alert
    for group in msgspec.yaml.decode((ROOT / "ops/prometheus/rules.yml").read_bytes(), type=Rules).groups
    for alert in group.rules
]


def series() -> dict[str, frozenset[str]]:
    """Every series of a host, as Prometheus has it, with its labels."""
    metrics = Metrics()
    labels = {
        one._name: frozenset(one._labelnames) for one in vars(metrics).values() if hasattr(one, "_labelnames")
    }
    return {
        family.name + suffix: labels.get(family.name, frozenset())
        for family in metrics.registry.collect()
        for suffix in _SUFFIXES[family.type]
    }


def first_cells(text: str, head: str) -> list[str]:
    """The first column of the table with this head."""
    table = text.partition(f"\n{head}")[2].partition("\n\n")[0]
    return [line.split(" | ")[0].removeprefix("| ") for line in table.splitlines()[2:]]


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.alert)
def test_an_alert_is_about_series_that_there_are(alert: Alert) -> None:
    """And about labels that they have; `le` is that of buckets."""
    known = series()
    named = set(re.findall(r"\btracon_\w+", alert.expr))
    assert named
    assert named <= known.keys()
    labels = set(re.findall(r'(\w+)=~?"', alert.expr))
    labels |= {name for by in re.findall(r"by \(([\w, ]+)\)", alert.expr) for name in by.split(", ")}
    labels |= set(re.findall(r"\$labels\.(\w+)", alert.annotations["summary"]))
    of_these = frozenset[str]().union(*(known[name] for name in named))
    assert labels <= of_these | {"le", "instance"}
    assert alert.labels["severity"] in ("critical", "warning")


def test_each_alert_has_its_section_in_the_runbook_and_each_section_its_alert() -> None:
    headings = re.findall(r"^### (\w+)$", RUNBOOK, re.MULTILINE)
    assert headings == [alert.alert for alert in ALERTS]
    mentioned = set(re.findall(r"\bTracon[A-Z]\w+", RUNBOOK))
    assert mentioned <= set(headings)


def test_the_runbook_knows_every_series() -> None:
    told = {name for cell in first_cells(RUNBOOK, "| series |") for name in re.findall(r"`(\w+)`", cell)}
    assert told == {family.name for family in Metrics().registry.collect()}


def test_the_runbook_knows_every_failure_of_the_readme() -> None:
    rows = first_cells(README, "| when this fails |")
    assert len(rows) > 20
    assert set(first_cells(RUNBOOK, "| when this fails |")) == set(rows)


def test_each_failure_of_the_readme_names_a_test_that_there_is() -> None:
    """What is promised there is proved somewhere."""
    table = README.partition("\n| when this fails |")[2].partition("\n\n")[0]
    for row in table.splitlines()[2:]:
        links = re.findall(r"\[the test\]\(([^)]+)\)", row)
        assert links, row
        for link in links:
            assert re.search(r"^(async )?def test_", (ROOT / link).read_text(), re.MULTILINE), link


def test_the_settings_that_the_runbook_names_are_there() -> None:
    told = re.findall(r"\*\*Settings\*\* (.+)", RUNBOOK)
    told += [line.rpartition(" | ")[2] for line in RUNBOOK.partition("\n## What fails")[2].splitlines()]
    sections = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    named = re.findall(r"`(\w+)\.(\w+|\*)`", "\n".join(told))
    assert len(named) > 20
    for section, key in named:
        keys = {field.name for field in msgspec.structs.fields(sections[section])}
        assert key in keys | {"*"}, f"{section}.{key}"


def test_the_routes_that_the_runbook_names_are_there() -> None:
    paths = {f"{route.method} {route.path}" for route in ROUTES}
    named = {route.strip() for route in re.findall(r"`((?:GET|POST) /[^`?]*)", RUNBOOK)}
    assert len(named) > 10
    assert named <= paths
