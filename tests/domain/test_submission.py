"""What a caller asks of one run stands above what its agent is defined to be."""

import msgspec

from domain.agent import AgentDefinition, ModelOptions
from domain.submission import Overrides, overridden

AGENT = AgentDefinition(
    name="support",
    instructions="Answer briefly.",
    provider="primary",
    model="small",
    options=ModelOptions(temperature=0.5, max_output_tokens=256, stop=("END",)),
    response_schema={"type": "object"},
)
with_ = msgspec.structs.replace


def test_who_asks_nothing_gets_the_agent_as_it_is() -> None:
    assert overridden(AGENT, None) is AGENT
    assert overridden(AGENT, Overrides()) == AGENT


def test_only_options_that_are_given_stand_above_the_agents() -> None:
    asked = Overrides(options=ModelOptions(temperature=0.0, seed=7))
    options = ModelOptions(temperature=0.0, max_output_tokens=256, stop=("END",), seed=7)
    assert overridden(AGENT, asked) == with_(AGENT, options=options)


def test_who_limits_an_answer_does_not_get_it_carried_on() -> None:
    """CHAIN-8"""
    asked = Overrides(options=ModelOptions(max_output_tokens=10))
    options = with_(AGENT.options, max_output_tokens=10)
    assert overridden(AGENT, asked) == with_(AGENT, options=options, max_length_continuations=0)


def test_an_answers_form_can_be_asked_for() -> None:
    """CHAIN-9"""
    asked = Overrides(response_schema={"type": "array"})
    assert overridden(AGENT, asked) == with_(AGENT, response_schema={"type": "array"})


def test_further_instructions_follow_the_agents_own() -> None:
    asked = Overrides(instructions="In German.")
    assert overridden(AGENT, asked).instructions == "Answer briefly.\n\nIn German."
    assert overridden(with_(AGENT, instructions=""), asked).instructions == "In German."
