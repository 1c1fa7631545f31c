"""A conversation as text, for a model that is to read about it and take no part in it."""

from collections.abc import Iterable, Iterator
from typing import assert_never

from domain.messages import AssistantMessage, Message, SystemMessage, ToolMessage, UserMessage

_BYTES_PER_TOKEN = 4
_TOKENS_PER_MESSAGE = 4
"""What stands around a message's text on any wire."""


def written(messages: Iterable[Message]) -> str:
    """Who said what, in order. Tool calls have no ids: each result is named after its tool."""
    return "\n\n".join(_lines(messages))


def tokens_in(text: str) -> int:
    """About how many tokens a text has. Bytes and not letters: what is not Latin has more tokens a letter."""
    return -(-len(text.encode(errors="surrogatepass")) // _BYTES_PER_TOKEN)


def tokens_of(messages: Iterable[Message]) -> int:
    """About how many tokens these messages take in a request."""
    return sum(_TOKENS_PER_MESSAGE + _tokens(message) for message in messages)


def _tokens(message: Message) -> int:
    told = tokens_in(message.content)
    if isinstance(message, AssistantMessage):
        for call in message.tool_calls:
            told += _TOKENS_PER_MESSAGE + tokens_in(call.name) + tokens_in(call.arguments)
    return told


def _lines(messages: Iterable[Message]) -> Iterator[str]:
    tools: dict[str, str] = {}
    for message in messages:
        match message:
            case SystemMessage(content=content):
                yield f"[system]\n{content}"
            case UserMessage(content=content):
                yield f"[user]\n{content}"
            case AssistantMessage(content=content, tool_calls=calls):
                if content:
                    yield f"[agent]\n{content}"
                for call in calls:
                    tools[call.id] = call.name
                    yield f"[agent calls the tool {call.name}]\n{call.arguments}"
            case ToolMessage(tool_call_id=call_id, content=content, failed=failed):
                kind = "failure" if failed else "result"
                yield f"[{kind} of the tool {tools.get(call_id, 'unknown')}]\n{content}"
            case _:
                assert_never(message)
