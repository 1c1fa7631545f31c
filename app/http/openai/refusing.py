"""What OpenAI's API takes and this one does not: refused where silence would give it another meaning."""

from collections.abc import Mapping
from typing import Any

from app.http.errors import BadBody, FieldError

TOOLS_ARE_HERE = "agents have their tools on the server; a request cannot bring any"
_NOT_SERVED = "is not supported"


class NotTaken:
    """A field that may be given only as one of the values that ask for nothing."""

    def __init__(self, *neutral: Any, why: str = _NOT_SERVED) -> None:
        self._neutral = (None, *neutral)
        self._why = why

    def check(self, name: str, value: Any) -> None:
        """Raise BadBody."""
        if value not in self._neutral:
            raise wrong(name, self._why)


def check_all(body: Any, fields: Mapping[str, NotTaken]) -> None:
    """Raise BadBody for the first of the fields that asks for something."""
    for name, rule in fields.items():
        rule.check(name, getattr(body, name))


def wrong(field: str, what: str) -> BadBody:
    return BadBody(f"{field}: {what}", FieldError(field=f"$.{field}", message=what))
