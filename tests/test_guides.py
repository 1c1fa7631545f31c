"""The guides, held to what they show."""

import re
from pathlib import Path
from typing import get_args

import pytest

from app.application import load_app
from app.metrics import Metrics
from app.models.classifiers import Classifier
from app.registry import Catalog
from app.settings.load import load_settings
from domain import events as e
from domain.agent import Compaction, Link, Loop
from domain.breaker import counts
from domain.chain.policy import ChainLink, ChainState, Retry, Stop, Verdict, after
from domain.failure import CallFailure, FailureClass, FailureKind

GUIDES = Path(__file__).parent.parent / "ops" / "guides"
FAILURES = (GUIDES / "provider-failures.md").read_text()


def blocks(language: str) -> list[str]:
    fenced = re.findall(r"^```(\w*)\n(.*?)^```$", FAILURES, re.MULTILINE | re.DOTALL)
    return [text for named, text in fenced if named == language]


def rows(heading: str) -> list[list[str]]:
    """The cells of the table below a heading, without its head."""
    section = re.split(r"\n##+ ", FAILURES.partition(f"\n## {heading}\n")[2])[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_settings_of_the_guide_are_the_settings_of_a_host(tmp_path: Path) -> None:
    """CLASS-3, CHAIN-1, CHAIN-13, BREAK-1, CONC-1: copied as they are, they load and fit together."""
    (settings,) = blocks("toml")
    file = tmp_path / "tracon.toml"
    file.write_text(settings)
    loaded = load_settings(file, {})
    catalog = Catalog.build(loaded, load_app(None))
    agent = catalog.agent("support")
    assert [str(link) for link in agent.links] == ["primary/small", "backup/big"]
    assert agent.compaction is not None
    assert agent.loop is not None
    assert agent.compaction == Compaction(summarizer=agent.compaction.summarizer, threshold=60000)
    assert agent.loop == Loop(criterion=agent.loop.criterion, judge=agent.loop.judge)


def test_what_the_guide_shows_as_a_default_is_one(tmp_path: Path) -> None:
    (settings,) = blocks("toml")
    sections = settings.partition("[providers")[0].splitlines()
    defaults = [line for line in sections if "default:" not in line]
    file = tmp_path / "tracon.toml"
    file.write_text("\n".join(defaults))
    assert load_settings(file, {}) == load_settings(None, {})


def test_the_classifier_of_the_guide_is_one(tmp_path: Path) -> None:
    """CLASS-1."""
    (code,) = blocks("python")
    file = tmp_path / "shop.py"
    file.write_text(code)
    (found,) = load_app(str(file)).classifiers
    assert isinstance(found, Classifier)
    moved = CallFailure(kind=FailureKind.STATUS, status=409, message="moving")
    assert found.function("primary", moved) is FailureClass.TRANSIENT


def test_the_table_of_classes_is_complete() -> None:
    assert [row[0] for row in rows("The classes")] == [f"`{failure_class}`" for failure_class in FailureClass]


@pytest.mark.parametrize("row", rows("The classes"), ids=lambda row: row[0])
def test_the_table_of_classes_says_what_the_chain_does(row: list[str]) -> None:
    """CLASS: each column is what the code does with the class."""
    failure_class = FailureClass(row[0].strip("`"))
    links = tuple(ChainLink(link=Link(provider=name, model="m")) for name in ("one", "two"))
    failure = CallFailure(kind=FailureKind.STATUS, message="no")
    verdict = Verdict(failure_class=failure_class)
    outcome = after(ChainState(links=links), verdict, failure)
    again = "once" if isinstance(outcome, Retry) else "no"
    last = after(outcome.state, verdict, failure) if isinstance(outcome, Retry) else outcome
    moves = "no" if isinstance(last, Stop) else "yes"
    assert row[2:] == [again, moves, "yes" if counts(failure_class, failure) else "no"]


def test_every_event_that_the_guide_explains_is_one() -> None:
    kinds = "Model|Chain|Run|Side|Context|Compaction|Criterion|Answer"
    named = set(re.findall(rf"`((?:{kinds})[A-Z]\w+)`", FAILURES))
    assert named <= {event.__name__ for event in get_args(e.AnyEvent)}
    assert {"ModelCallFailed", "ModelFallbackUsed", "ChainLinkSkipped", "ChainExhausted"} <= named


def test_every_series_that_the_guide_names_is_shown() -> None:
    named = set(re.findall(r"`(tracon_\w+)`", FAILURES))
    shown = {
        f"{family.name}{'_total' * (family.type == 'counter')}" for family in Metrics().registry.collect()
    }
    assert named <= shown
