"""What of a transcript may not travel as it is: tool-call ids, arguments that are no object (CHAIN-15)."""

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from domain.messages import AssistantMessage, Message, ToolMessage

_ANY_OBJECT = msgspec.json.Decoder(dict[str, Any])


def with_wire_ids(messages: Iterable[Message], allowed: re.Pattern[str]) -> Iterator[Message]:
    """The messages, every tool call with an id that `allowed` matches and that no earlier call has.

    Ids that will do are kept. The others become the same on every call, so that prompt caches keep working.
    """
    taken: set[str] = set()
    current: dict[str, str] = {}
    for message in messages:
        if isinstance(message, AssistantMessage) and message.tool_calls:
            current = {call.id: _wire_id(call.id, allowed, taken) for call in message.tool_calls}
            yield _renamed(message, current)
        elif isinstance(message, ToolMessage):
            new = current.get(message.tool_call_id, message.tool_call_id)
            yield (
                message if new == message.tool_call_id else msgspec.structs.replace(message, tool_call_id=new)
            )
        else:
            yield message


def arguments_object(arguments: str) -> dict[str, Any]:
    """The arguments as the object that strict providers insist on; other text is kept inside of one."""
    if not arguments.strip():
        return {}
    try:
        return _ANY_OBJECT.decode(arguments)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return {"malformed_arguments": arguments}


def arguments_text(arguments: str) -> str:
    """The same as JSON text. A model's own spelling of an object stays as it is."""
    parsed = arguments_object(arguments)
    kept = arguments if parsed and "malformed_arguments" not in parsed else ""
    return kept or msgspec.json.encode(parsed).decode()


def _renamed(message: AssistantMessage, ids: dict[str, str]) -> AssistantMessage:
    if all(old == new for old, new in ids.items()):
        return message
    calls = tuple(msgspec.structs.replace(call, id=ids[call.id]) for call in message.tool_calls)
    # What only the provider may read names its calls by their old ids.
    return msgspec.structs.replace(message, tool_calls=calls, provider_blocks=None)


def _wire_id(call_id: str, allowed: re.Pattern[str], taken: set[str]) -> str:
    wire_id, attempt = call_id, 0
    while wire_id in taken or not allowed.fullmatch(wire_id):
        attempt += 1
        digest = hashlib.sha256(f"{attempt}:{call_id}".encode(errors="surrogatepass")).hexdigest()
        wire_id = f"call{digest[:5]}"
    taken.add(wire_id)
    return wire_id
