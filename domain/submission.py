"""What a submission can bring besides its messages."""

from typing import Any

import msgspec

from domain.agent import AgentDefinition, ModelOptions


class Overrides(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the caller asks of this one run, over what its agent is defined to be."""

    options: ModelOptions = ModelOptions()
    """Those that are given stand above the agent's own."""
    response_schema: dict[str, Any] | None = None
    """A JSON schema for the answer, in place of the agent's."""
    instructions: str = ""
    """They follow the agent's own, for this run only: no session remembers them."""


class Origin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The API that took the submission, and what of the request that API says again in its answers.

    Nobody else reads the echo. It is on record so that any host can give the same answer at any time.
    """

    api: str
    echo: dict[str, Any] = {}


def overridden(definition: AgentDefinition, overrides: Overrides | None) -> AgentDefinition:
    """The definition that such a run starts with."""
    if overrides is None:
        return definition
    changes: dict[str, Any] = {"options": _merged(definition.options, overrides.options)}
    if overrides.options.max_output_tokens is not None:
        # Who says how long an answer may be does not want it carried on past that (CHAIN-8).
        changes["max_length_continuations"] = 0
    if overrides.response_schema is not None:
        changes["response_schema"] = overrides.response_schema
    if overrides.instructions:
        own = definition.instructions
        changes["instructions"] = f"{own}\n\n{overrides.instructions}" if own else overrides.instructions
    return msgspec.structs.replace(definition, **changes)


def _merged(own: ModelOptions, asked: ModelOptions) -> ModelOptions:
    given = {
        field.name: value
        for field in msgspec.structs.fields(ModelOptions)
        if (value := getattr(asked, field.name)) != field.default
    }
    return msgspec.structs.replace(own, **given)
