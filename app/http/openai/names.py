"""Ids as OpenAI's API has them. Each is made of the id of the run, or of the conversation, that it is of."""

from uuid import UUID, uuid4

from domain.ids import RunId

_RESPONSE, _CONVERSATION = "resp_", "conv_"


def completion_id(run_id: RunId) -> str:
    return f"chatcmpl-{run_id.hex}"


def response_id(run_id: RunId) -> str:
    return f"{_RESPONSE}{run_id.hex}"


def run_of(text: str) -> RunId | None:
    """The run behind a response's id; None for what is no such id."""
    digits = text.removeprefix(_RESPONSE)
    if digits == text or len(digits) != 32:
        return None
    try:
        return RunId(UUID(hex=digits))
    except ValueError:
        return None


def message_id(origin: str, number: int | str) -> str:
    """One message of a run or a conversation, whose hexadecimal id is `origin`."""
    return f"msg_{origin}_{number}"


def new_conversation_id() -> str:
    return f"{_CONVERSATION}{uuid4().hex}"
