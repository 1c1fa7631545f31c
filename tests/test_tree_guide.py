"""The guide to trees and budgets, held to what it shows."""

import re
from decimal import Decimal
from pathlib import Path

from app.application import load_app
from app.registry import Catalog
from app.settings.load import load_settings
from app.supervision.agent_tools import spec_of
from domain import budget as b

GUIDE = (Path(__file__).parent.parent / "ops" / "guides" / "trees-and-budgets.md").read_text()
README = (Path(__file__).parent.parent / "README.md").read_text()


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    return [text for named, text in fenced if named == language]


def test_the_agents_of_the_guide_fit_together(tmp_path: Path) -> None:
    (tmp_path / "tracon.toml").write_text("\n".join(blocks("toml")))
    (tmp_path / "tools.py").write_text("\n".join(blocks("python")))
    settings = load_settings(tmp_path / "tracon.toml", {})
    catalog = Catalog.build(settings, load_app(str(tmp_path / "tools.py")))
    [agent] = catalog.agent("editor").agents
    spec = spec_of(catalog.agent(agent))
    assert sorted(spec.parameters["properties"]) == ["message", "tone"]
    assert spec.parameters["required"] == ["message"]


def test_the_limits_of_the_guide_are_the_defaults(tmp_path: Path) -> None:
    """BUDGET-1."""
    (tmp_path / "written.toml").write_text(blocks("toml")[1])
    (tmp_path / "empty.toml").write_text("")
    written, none = (
        load_settings(tmp_path / f"{name}.toml", {}).agent_graph for name in ("written", "empty")
    )
    assert (written.max_depth, written.max_total_runs, written.max_total_tokens) == (
        none.max_depth, none.max_total_runs, none.max_total_tokens,
    )  # fmt: skip
    assert (none.max_duration, none.max_total_cost) == (None, None)


def refused(limit: b.Limit) -> tuple[bool, bool, bool, bool]:
    """Whether a tree that has used up this limit refuses a model turn, a tool call, a node and a child."""
    spent = b.Spent(charge=b.Charge(tokens=1, cost=Decimal(1)), runs=1)
    limits = {
        b.Limit.DEPTH: b.Limits(depth=0),
        b.Limit.RUNS: b.Limits(depth=9, runs=1),
        b.Limit.TOKENS: b.Limits(depth=9, tokens=1),
        b.Limit.COST: b.Limits(depth=9, cost=Decimal(1)),
        b.Limit.DURATION: b.Limits(depth=9, duration_s=1.0),
    }
    budget = b.Budget(limits=limits[limit], spent=spent)
    work = b.refusal_of_work(budget, 1.0) is not None
    return work, work, b.refusal_of_node(budget, 1.0) is not None, b.refusal_of_child(budget, 1) is not None


def test_the_table_says_what_each_limit_stops() -> None:
    """BUDGET-2, BUDGET-4, BUDGET-5."""
    rows = [line.strip("|").split("|") for line in GUIDE.splitlines() if line.startswith("| `max_")]
    told = {row[0].strip(" `"): tuple(cell.strip() == "refused" for cell in row[1:]) for row in rows}
    assert told == {f"max_{limit}": refused(limit) for limit in b.Limit}


def test_the_bound_is_printed_as_it_is_computed() -> None:
    formula = "actual(last) + sum of max(0, actual - estimate) over the others in flight + reported"
    assert f"bound = {formula}" in GUIDE
    assert f"bound = {formula}" in str(b.overshoot_bound.__doc__)
    last, other = (b.Step(b.Charge(tokens=5), b.Charge(tokens=tokens)) for tokens in (7, 9))
    assert b.overshoot_bound(last, [other], b.Charge(tokens=1)).tokens == 7 + (9 - 5) + 1
