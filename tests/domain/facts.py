"""Short names for the facts that most tests begin with."""

from decimal import Decimal

from domain.agent import AgentDefinition
from domain.commands import CreateRun, StartRun
from domain.events import (
    FinishReason,
    ModelCallFailed,
    ModelCallStarted,
    ModelReplied,
    RunCreated,
    RunKind,
    RunStarted,
    ToolEffect,
    ToolFailed,
    ToolFailure,
    ToolInvoking,
    ToolReturned,
)
from domain.failure import CallFailure, FailureClass, FailureKind
from domain.messages import AssistantMessage, ToolCall, Usage, UserMessage

QUESTION = UserMessage(content="where is order 7?")
CREATE = CreateRun(tenant="acme", agent="support", input=(QUESTION,))
CREATED = RunCreated(tenant="acme", kind=RunKind.AGENT, agent="support", input=(QUESTION,))
DEFINITION = AgentDefinition(name="support", provider="primary", model="small", tools=("get_order",))
START = StartRun(host="host-1", definition=DEFINITION)
STARTED = RunStarted(host="host-1", definition=DEFINITION)
OPENED = (CREATED, STARTED)
OVERLOADED = CallFailure(kind=FailureKind.STATUS, message="overloaded", status=503)


def call(call_id: str, name: str = "get_order", arguments: str = '{"id":7}') -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def says(text: str = "", *calls: ToolCall) -> AssistantMessage:
    return AssistantMessage(content=text, tool_calls=calls)


def calling(step: int, attempt: int = 1) -> ModelCallStarted:
    return ModelCallStarted(step=step, attempt=attempt, provider="primary", model="small")


def replied(
    step: int,
    message: AssistantMessage,
    *,
    usage: Usage | None = None,
    cost: Decimal | None = None,
    finish: FinishReason | None = None,
) -> ModelReplied:
    usual = FinishReason.TOOL_CALLS if message.tool_calls else FinishReason.STOP
    return ModelReplied(
        step=step,
        provider="primary",
        model="small",
        message=message,
        finish=finish or usual,
        usage=usage or Usage(),
        cost=cost,
    )


def failed(step: int, attempt: int = 1, failure: CallFailure = OVERLOADED) -> ModelCallFailed:
    return ModelCallFailed(
        step=step,
        attempt=attempt,
        provider="primary",
        model="small",
        failure_class=FailureClass.UNAVAILABLE,
        failure=failure,
    )


def asked_for(*calls: ToolCall) -> tuple[ModelCallStarted, ModelReplied]:
    """A first step whose reply asks for these calls."""
    return calling(1), replied(1, says("", *calls))


def invoking(tool_call: ToolCall, effect: ToolEffect = ToolEffect.READ) -> ToolInvoking:
    return ToolInvoking(
        call_id=tool_call.id,
        tool=tool_call.name,
        arguments=tool_call.arguments,
        effect=effect,
        call_key=f"key-{tool_call.id}",
    )


def returned(tool_call: ToolCall, output: str) -> ToolReturned:
    return ToolReturned(call_id=tool_call.id, tool=tool_call.name, output=output)


def tool_failed(
    tool_call: ToolCall, output: str, failure: ToolFailure = ToolFailure.UNKNOWN_TOOL
) -> ToolFailed:
    return ToolFailed(call_id=tool_call.id, tool=tool_call.name, failure=failure, output=output)
