"""The guide to workflows, held to what it shows."""

import re
from pathlib import Path
from typing import get_args

from app.application import load_app
from app.http.routes import ROUTES
from app.registry import Catalog
from app.settings.load import load_settings
from app.settings.sections import WorkflowSettings
from app.workflow_catalog import WorkflowCatalog
from domain.events import InputAnswered, WorkflowEvent
from domain.workflow.definition import WorkflowKind

GUIDE = (Path(__file__).parents[2] / "ops" / "guides" / "workflows.md").read_text()


def block(language: str) -> str:
    [found] = [
        text
        for named, text in re.findall(r"^```(\w*)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
        if named == language
    ]
    return str(found)


def first_column(heading: str) -> list[str]:
    section = re.split(r"\n##+ ", GUIDE.partition(f"\n## {heading}\n")[2])[0]
    return [row.split("`")[1] for row in section.splitlines() if row.startswith("| `")]


def test_the_workflows_of_the_guide_fit_together(tmp_path: Path) -> None:
    """WF-1"""
    (tmp_path / "tracon.toml").write_text(block("toml"))
    (tmp_path / "pages.py").write_text(block("python"))
    settings, app = load_settings(tmp_path / "tracon.toml", {}), load_app(str(tmp_path / "pages.py"))
    catalog = WorkflowCatalog.build(settings, app, Catalog.build(settings, app))
    assert [one.name for one in catalog.workflows()] == ["article", "two-views"]


def test_every_kind_has_its_row() -> None:
    assert [row for row in first_column("The four kinds") if row != "kind"] == list(WorkflowKind)


def test_every_event_of_a_workflow_has_its_row() -> None:
    assert first_column("A run") == [kind.__name__ for kind in (*get_args(WorkflowEvent), InputAnswered)]


def test_every_setting_and_route_that_is_named_is_one() -> None:
    named = set(re.findall(r"`workflows\.(\w+)(?:`| = )", GUIDE))
    assert named <= set(WorkflowSettings.__struct_fields__)
    assert {"resume_interrupted_runs", "max_resume_attempts", "enable_checkpointing"} <= named
    routes = {f"{route.method} {route.path}" for route in ROUTES}
    assert set(re.findall(r"`((?:GET|POST) /api/[\w/{}]+)", GUIDE)) <= routes
