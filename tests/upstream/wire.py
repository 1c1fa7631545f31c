"""How values go onto the wire."""

import json
from typing import Any


def json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()


def sse(value: Any, name: str = "") -> bytes:
    line = f"event: {name}\n" if name else ""
    return line.encode() + b"data: " + json_bytes(value) + b"\n\n"
