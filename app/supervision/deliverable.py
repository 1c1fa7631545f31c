"""What an agent's turn must have brought about before it may end (CHAIN-9)."""

import msgspec
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from domain.agent import AgentDefinition
from domain.messages import AssistantMessage, ToolMessage
from domain.run import Run
from domain.turn import Lacking


def lacking_of(definition: AgentDefinition) -> Lacking:
    """Says what a turn that has its answer still lacks by this definition."""
    validator = (
        None if definition.response_schema is None else Draft202012Validator(definition.response_schema)
    )

    def lacking(run: Run) -> str | None:
        tool = definition.deliverable_tool
        if tool is not None and not _was_called(run, tool):
            return f"no call of the tool {tool} has succeeded"
        return None if validator is None else _unlike_schema(validator, run.answer)

    return lacking


def nudge_for(missing: str) -> str:
    """What the model is told."""
    return f"This is not finished: {missing}. Put that right now."


def _was_called(run: Run, tool: str) -> bool:
    wanted: set[str] = set()
    for message in run.transcript:
        if isinstance(message, AssistantMessage):
            wanted = {call.id for call in message.tool_calls if call.name == tool}
        elif isinstance(message, ToolMessage) and message.tool_call_id in wanted and not message.failed:
            return True
    return False


def _unlike_schema(validator: Draft202012Validator, answer: str) -> str | None:
    try:
        value = msgspec.json.decode(answer)
    except msgspec.DecodeError as error:
        return f"the answer must be JSON and nothing else, but {error}"
    flaw = best_match(validator.iter_errors(value))
    return (
        None
        if flaw is None
        else f"the answer does not meet its JSON schema at {flaw.json_path}: {flaw.message}"
    )
