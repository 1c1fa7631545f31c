"""The catalogue: agents of the code and of the settings, and everything that they name is there."""

from typing import Any

import msgspec
import pytest

from app.agents import Agent, InvalidAgent
from app.models.classifiers import classifier
from app.models.provider_settings import ModelSettings, ProviderSettings
from app.registry import AgentNotFound, AppDefinitions, Catalog
from app.settings.errors import SettingsError
from app.settings.load import Settings
from app.tools.tool import Tool, tool
from domain.agent import AgentDefinition, Binding, Compaction, Loop


def a_tool(name: str, **terms: Any) -> Tool:
    def function() -> None:
        """Do it."""

    return tool(name=name, **terms)(function)


SETTINGS = Settings(
    providers={
        "primary": ProviderSettings(type="openai", models={"small": ModelSettings(), "big": ModelSettings()}),
        "open": ProviderSettings(type="scripted"),
    }
)
SUPPORT = AgentDefinition(name="support", provider="primary", model="small", tools=("get_order",))


def settings_with(*agents: AgentDefinition) -> Settings:
    return msgspec.structs.replace(SETTINGS, agents={agent.name: agent for agent in agents})


def refusals(settings: Settings, app: AppDefinitions) -> list[str]:
    with pytest.raises(SettingsError) as refused:
        Catalog.build(settings, app)
    return [str(problem) for problem in refused.value.problems]


def test_agents_of_the_code_and_of_the_settings_stand_together() -> None:
    billing = AgentDefinition(name="billing", provider="open", model="anything")
    app = AppDefinitions(tools=(a_tool("get_order"),), agents=(SUPPORT,))
    catalog = Catalog.build(settings_with(billing), app)
    assert catalog.agents() == (billing, SUPPORT)
    assert catalog.agent("support") is SUPPORT
    assert catalog.tools.names() == ("get_order",)


def test_an_agent_that_is_not_there_is_not_found() -> None:
    with pytest.raises(AgentNotFound, match="there is no agent 'support'"):
        Catalog.build(SETTINGS, AppDefinitions()).agent("support")


def test_everything_an_agent_names_must_be_there() -> None:
    agent = AgentDefinition(
        name="support",
        provider="primry",
        model="small",
        fallbacks=SUPPORT.links + AgentDefinition(name="x", provider="primary", model="bigg").links,
        tools=("get_ordr", "refund", "refund"),
    )
    app = AppDefinitions(tools=(a_tool("get_order"), a_tool("refund")))
    assert refusals(settings_with(agent), app) == [
        "settings: agents.support.tools: names 'refund' twice",
        "settings: agents.support.tools: there is no tool 'get_ordr'; did you mean 'get_order'?",
        "settings: agents.support.provider: there is no provider 'primry'; did you mean 'primary'?",
        "settings: agents.support.fallbacks.1.model: provider 'primary' lists no model 'bigg';"
        " did you mean 'big'?",
    ]


def test_a_link_is_named_once() -> None:
    """CHAIN-2: named again it would be a second retry, and nobody could tell which of the two failed."""
    agent = AgentDefinition(name="a", provider="open", model="m", fallbacks=(*SUPPORT.links, *SUPPORT.links))
    assert refusals(settings_with(agent), AppDefinitions()) == [
        "settings: agents.a.fallbacks.1: names primary/small again; a link has its retry, and no second one"
    ]


def test_the_links_of_a_summarizer_and_a_judge_are_checked_like_the_agents_own() -> None:
    """CHAIN-13."""
    twice = Binding(provider="primary", model="small", fallbacks=SUPPORT.links[:1])
    agent = AgentDefinition(
        name="a",
        provider="open",
        model="m",
        compaction=Compaction(summarizer=Binding(provider="primry", model="small"), threshold=1000),
        loop=Loop(criterion="It is short.", judge=twice),
    )
    assert refusals(settings_with(agent), AppDefinitions()) == [
        "settings: agents.a.compaction.summarizer.provider: there is no provider 'primry';"
        " did you mean 'primary'?",
        "settings: agents.a.loop.judge.fallbacks.0: names primary/small again;"
        " a link has its retry, and no second one",
    ]


def summing_up_at(threshold: int, **model: int) -> Settings:
    wanted = Compaction(summarizer=Binding(provider="p", model="m"), threshold=threshold)
    agent = AgentDefinition(name="a", provider="p", model="m", compaction=wanted)
    providers = {"p": {"type": "scripted", "models": {"m": model}}}
    return msgspec.convert({"providers": providers, "agents": {"a": agent}}, Settings)


def test_a_threshold_that_is_never_reached_is_refused() -> None:
    """CHAIN-13: the model would refuse the call before anything is summarised."""
    assert refusals(summing_up_at(8000, context_window=8000), AppDefinitions()) == [
        "settings: agents.a.compaction.threshold: 8000 tokens is no less than the 8000"
        " that p/m can read at all"
    ]
    for fitting in (summing_up_at(7999, context_window=8000), summing_up_at(8000)):
        assert Catalog.build(fitting, AppDefinitions()).agent("a").compaction is not None


def test_a_schema_that_no_answer_could_meet_is_refused() -> None:
    """CHAIN-9."""
    agent = AgentDefinition(name="a", provider="open", model="m", response_schema={"$ref": "urn:other"})
    assert refusals(settings_with(agent), AppDefinitions()) == [
        "settings: agents.a.response_schema: refers to 'urn:other', which is not in the schema itself"
    ]


def test_a_classifier_is_of_a_provider_that_is_there() -> None:
    """CLASS-1: a misspelt one would never be asked."""
    lost = classifier(provider="primry")(lambda provider, failure: None)
    assert refusals(SETTINGS, AppDefinitions(classifiers=(lost,), source="shop.py")) == [
        "shop.py: classifiers: there is no provider 'primry'; did you mean 'primary'?"
    ]


def test_the_source_of_a_problem_is_where_the_agent_is_defined() -> None:
    app = AppDefinitions(agents=(SUPPORT,), source="shop.py")
    assert refusals(SETTINGS, app) == [
        "shop.py: agents.support.tools: there is no tool 'get_order'; there is none"
    ]


def test_a_provider_that_lists_no_models_takes_any() -> None:
    agent = AgentDefinition(name="a", provider="open", model="whatever")
    assert Catalog.build(settings_with(agent), AppDefinitions()).agent("a") == agent


def test_an_agent_may_have_a_tool_that_requires_approval() -> None:
    """TOOL-2"""
    app = AppDefinitions(tools=(a_tool("get_order", requires_approval=True),))
    catalog = Catalog.build(settings_with(SUPPORT), app)
    assert catalog.tools.get("get_order") == app.tools[0]


def test_a_name_stands_for_one_thing() -> None:
    app = AppDefinitions(
        tools=(a_tool("get_order"), a_tool("get_order")),
        agents=(SUPPORT, msgspec.structs.replace(SUPPORT)),
        source="shop.py",
    )
    assert refusals(settings_with(SUPPORT), app) == [
        "shop.py: tools.get_order: two tools have this name",
        "shop.py: agents.support: two agents have this name",
        "shop.py: agents.support: is in the settings too; give one of them another name",
        "shop.py: agents.support: is in the settings too; give one of them another name",
    ]


def test_an_agent_in_code_is_checked_when_it_is_written() -> None:
    get_order = a_tool("get_order")
    agent = Agent(
        "support",
        provider="primary",
        model="small",
        instructions="Be brief.",
        tools=[get_order, "refund"],
        fallbacks=[{"provider": "open", "model": "m"}, *SUPPORT.links],
        options={"temperature": 0},
        parameters={"tone": "kind"},
        compaction={"summarizer": {"provider": "open", "model": "m"}, "threshold": 60000},
        loop={"criterion": "It is kind.", "judge": Binding(provider="open", model="m")},
    )
    assert agent.tools == (get_order,)
    assert agent.definition == msgspec.convert(
        {
            "name": "support",
            "provider": "primary",
            "model": "small",
            "instructions": "Be brief.",
            "tools": ["get_order", "refund"],
            "fallbacks": [{"provider": "open", "model": "m"}, {"provider": "primary", "model": "small"}],
            "options": {"temperature": 0.0},
            "parameters": {"tone": "kind"},
            "compaction": {"summarizer": {"provider": "open", "model": "m"}, "threshold": 60000},
            "loop": {"criterion": "It is kind.", "judge": {"provider": "open", "model": "m"}},
        },
        AgentDefinition,
    )


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"name": "two words"}, r"agent 'two words': .*\$\.name"),
        ({"options": {"temprature": 1}}, "unknown field `temprature`"),
        ({"fallbacks": ["open/m"]}, r"\$\.fallbacks"),
        ({"tools": [print]}, "agent 'a': "),
        ({"compaction": {"threshold": 9}}, "missing required field `summarizer`"),
        ({"loop": {"criterion": "", "judge": {"provider": "p", "model": "m"}}}, r"\$\.loop\.criterion"),
    ],
)
def test_an_agent_that_is_written_wrongly_is_refused_at_once(wrong: dict[str, Any], reason: str) -> None:
    with pytest.raises(InvalidAgent, match=reason):
        Agent(**{"name": "a", "provider": "p", "model": "m", **wrong})
