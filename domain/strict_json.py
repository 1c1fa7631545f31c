"""JSON as it is meant: no key twice, no number that is none, no text that cannot be written down again."""

import json
import math
from collections.abc import Callable, Iterable
from typing import Any, NoReturn


def parse(text: str, number: Callable[[str], Any] | None = None) -> Any:
    """The value. Raise ValueError with a reason that a reader can act on.

    `number` turns the digits of a number into what stands for it; without it, they become an int or a float.
    """
    try:
        value = json.loads(
            text,
            object_pairs_hook=_object,
            parse_int=number,
            parse_float=number or _finite,
            parse_constant=_no_number,
        )
        # "\ud800" alone is valid JSON, but it is half a character: nothing can store or send it.
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise ValueError("it holds half a surrogate pair") from error
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError(f"{first_repeated(key for key, _ in pairs)!r} is given twice")
    return found


def first_repeated(names: Iterable[str]) -> str | None:
    """The first name that was there before. In one pass: whoever sends the names chooses how many."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            return name
        seen.add(name)
    return None


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:20]} is too large")
    return number


def _no_number(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")
