"""Versions of an agent as pure decisions."""

import pytest

from domain import versions
from domain.agent import AgentDefinition
from domain.agent_versions import AGENTS, AgentNotFound
from domain.events import AgentDefined, AgentEvent, AgentRemoved
from domain.ids import Version, agent_stream
from domain.versions import Define, Expected, Remove, Versioned, VersionMoved

AGENT = AgentDefinition(name="a", provider="primary", model="small")
OTHER = AgentDefinition(name="a", provider="primary", model="big")
DEFINE, REMOVE = Define(definition=AGENT, by="key"), Remove(name="a", by="key")
NONE: Versioned[AgentDefinition] = Versioned()
THERE = Versioned(version=Version(3), definition=AGENT)
GONE: Versioned[AgentDefinition] = Versioned(version=Version(4))


def decide(
    now: Versioned[AgentDefinition], command: Define[AgentDefinition] | Remove, expected: Expected
) -> list[AgentEvent]:
    return versions.decide(AGENTS, now, command, expected)


def version_after(event: AgentEvent, version: Version) -> Versioned[AgentDefinition]:
    return versions.version_after(AGENTS, event, version)


def test_a_definition_that_is_new_is_a_version_and_the_same_is_none() -> None:
    assert decide(NONE, DEFINE, Expected()) == [AgentDefined(definition=AGENT, by="key")]
    assert decide(GONE, DEFINE, Expected()) == [AgentDefined(definition=AGENT, by="key")]
    assert decide(THERE, DEFINE, Expected()) == []
    assert decide(THERE, Define(definition=OTHER), Expected()) == [AgentDefined(definition=OTHER)]


def test_what_is_there_can_be_removed() -> None:
    assert decide(THERE, REMOVE, Expected(version=3)) == [AgentRemoved(name="a", by="key")]
    for nothing in (NONE, GONE):
        with pytest.raises(AgentNotFound):
            decide(nothing, REMOVE, Expected())


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (THERE, Expected(version=2)),
        (THERE, Expected(exists=False)),
        (NONE, Expected(exists=True)),
        (GONE, Expected(exists=True)),
        (GONE, Expected(version=3)),
    ],
)
def test_who_expected_something_else_changes_nothing(
    now: Versioned[AgentDefinition], expected: Expected
) -> None:
    with pytest.raises(VersionMoved, match=f"version {now.version} now"):
        decide(now, DEFINE, expected)


def test_the_last_fact_says_it_all() -> None:
    assert version_after(AgentDefined(definition=AGENT), Version(3)) == THERE
    assert version_after(AgentRemoved(name="a"), Version(4)) == GONE


def test_the_same_name_of_two_tenants_is_two_agents() -> None:
    """HTTP-2"""
    assert agent_stream("a", "bc") != agent_stream("ab", "c")
