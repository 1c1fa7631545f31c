"""An agent's parameters: declared with their defaults, given by the caller, used in what it is told."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from domain.agent import AgentDefinition
from domain.errors import Rejected

PARAMETER_NAME = re.compile(r"(?!__)[A-Za-z_][A-Za-z0-9_]*")
"""What `{{ name }}` can refer to, and what a field of a model's call can be called."""
_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_][A-Za-z0-9_]*)\s*\}\}")


class BadParameter(Rejected):
    """A parameter that the agent does not declare, or one that it needs and did not get."""

    code = "bad_parameter"

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.field = f"parameters.{name}"


def instantiate(definition: AgentDefinition, given: Mapping[str, Any]) -> AgentDefinition:
    """The definition with its `{{ name }}` placeholders filled in. A default of None must be given."""
    for name in given:
        if name not in definition.parameters:
            declared = ", ".join(definition.parameters) or "none"
            raise BadParameter(
                name, f"agent {definition.name} has no parameter {name!r}; it declares: {declared}"
            )
    values = {**definition.parameters, **given}
    for name, value in values.items():
        if value is None:
            raise BadParameter(name, f"agent {definition.name} needs the parameter {name!r}")
    if not values:
        return definition
    loop = definition.loop
    if loop is not None:
        loop = msgspec.structs.replace(loop, criterion=_filled(values, loop.criterion))
    instructions = _filled(values, definition.instructions)
    return msgspec.structs.replace(definition, instructions=instructions, loop=loop)


def _filled(values: Mapping[str, Any], text: str) -> str:
    return _PLACEHOLDER.sub(lambda m: _text(values, m), text)


def _text(values: Mapping[str, Any], match: re.Match[str]) -> str:
    if match[1] not in values:
        return match[0]
    value = values[match[1]]
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
