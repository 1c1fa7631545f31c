"""What an agent's turn must have brought about before it may end (CHAIN-9)."""

from app.models.answer_check import AnswerSchema
from domain.agent import AgentDefinition
from domain.messages import AssistantMessage, Message, ToolMessage
from domain.run import Run
from domain.turn import Lacking


def lacking_of(definition: AgentDefinition) -> Lacking:
    """Says what a turn that has its answer still lacks by this definition."""
    schema = None if definition.response_schema is None else AnswerSchema(definition.response_schema)

    def lacking(run: Run) -> str | None:
        tool = definition.deliverable_tool
        if tool is not None and not _was_called(tool, _replies(run)):
            return f"no call of the tool {tool} has succeeded"
        return None if schema is None else schema.flaw_in(run.answer)

    return lacking


def nudge_for(missing: str) -> str:
    """What the model is told."""
    return f"This is not finished: {missing}. Put that right now."


def _replies(run: Run) -> tuple[Message, ...]:
    """The turn without its input, which may tell of calls that others made."""
    return run.transcript[len(run.created.input) if run.created else 0 :]


def _was_called(tool: str, messages: tuple[Message, ...]) -> bool:
    wanted: set[str] = set()
    for message in messages:
        if isinstance(message, AssistantMessage):
            wanted = {call.id for call in message.tool_calls if call.name == tool}
        elif isinstance(message, ToolMessage) and message.tool_call_id in wanted and not message.failed:
            return True
    return False
