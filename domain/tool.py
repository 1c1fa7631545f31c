"""A tool as a model is told about it."""

from typing import Any

import msgspec


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What a model may call. `parameters` is a JSON schema of an object."""

    name: str
    description: str
    parameters: dict[str, Any]
