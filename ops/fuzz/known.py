"""What there is at the service by now, so that not every request is about something that nobody has."""

import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

_MOST = 40
"""Of one kind. The first ones stay: requests are the same whenever the same service is asked."""


class Known:
    """Names and ids by the collection that they are in, learned from the service's own answers."""

    def __init__(self, fields: Mapping[str, tuple[Any, ...]]) -> None:
        self._fields = fields
        self._values: dict[tuple[str, str], list[str]] = {}

    def learn(self, path: str, answer: object) -> None:
        """Take from an answer at a path of the description, `/api/runs` say, what is in that collection."""
        if not isinstance(answer, dict) or "{" in path:
            return
        for thing in _things(answer):
            inner = [value for value in thing.values() if isinstance(value, dict)]
            for fields in (thing, *inner):
                for name, value in fields.items():
                    if isinstance(value, str) and value:
                        self._add(path, name, value)

    def in_path(self, path: str, parameters: Mapping[str, str], pick: int) -> dict[str, str]:
        """The parameters of the path with what is known in place of what was made up."""
        return {name: self._named(path, name, pick) or value for name, value in parameters.items()}

    def in_body(self, body: Any, pick: int, *, keep: frozenset[str] | None) -> Any:
        """The body with what the service has heard of in its fields, and of the others only those to keep."""
        if not isinstance(body, dict):
            return body
        return {
            name: self._field(name, value, pick)
            for name, value in body.items()
            if keep is None or name in keep or name in self._fields
        }

    def _field(self, name: str, value: Any, pick: int) -> Any:
        choice = self._fields.get(name)
        return choice[pick % len(choice)] if choice else value

    def _named(self, path: str, name: str, pick: int) -> str | None:
        collection = path.partition("/{")[0]
        for field in (name, "id", "name"):
            if values := self._values.get((collection, field)):
                return quote(values[pick % len(values)], safe="")
        return None

    def _add(self, collection: str, name: str, value: str) -> None:
        values = self._values.setdefault((collection, name), [])
        if value not in values and len(values) < _MOST and not re.fullmatch(r"\.+", value):
            values.append(value)


def _things(answer: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A list's items, or the one thing that was made."""
    if "id" in answer or "name" in answer or "definition" in answer:
        yield answer
        return
    lists = [value for value in answer.values() if isinstance(value, list)]
    yield from (item for values in lists for item in values if isinstance(item, dict))
