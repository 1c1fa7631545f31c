"""What a link is asked: the same as every other of the chain, and perhaps a text to carry on (CHAIN-5)."""

from app.models.port import ModelRequest, ToolSpec
from app.supervision.live_run import LiveRun
from app.supervision.workbench import Workbench
from domain.agent import AgentDefinition
from domain.chain.policy import ChainState, is_last
from domain.messages import AssistantMessage, Message, UserMessage

GO_ON = (
    "Your answer was cut off where the text above ends. Go on from exactly there. "
    "Do not repeat anything and do not comment on the interruption."
)


def request_for(
    live: LiveRun, bench: Workbench, definition: AgentDefinition, state: ChainState, so_far: str
) -> ModelRequest:
    """The request to the link that `state` is at. `so_far` is the text that its answer is to carry on."""
    return ModelRequest(
        model=state.link.model,
        instructions=definition.instructions,
        messages=_messages(live, so_far, prefill=state.candidate.supports_prefill),
        tools=tools_of(live.tenant, bench, definition),
        options=definition.options,
        response_schema=definition.response_schema,
        # They configure the primary's client and would mean nothing to another (CHAIN-5).
        provider_settings=definition.provider_settings if state.position == 0 else {},
        # The last link left has all the time that the run has (CLASS-2).
        first_content_timeout_s=None if is_last(state) else bench.chain.first_content_timeout,
    )


def tools_of(tenant: str, bench: Workbench, definition: AgentDefinition) -> tuple[ToolSpec, ...]:
    """What the agent may call."""
    return (*bench.tools.specs(definition.tools), *bench.agents.specs(tenant, definition.agents))


def _messages(live: LiveRun, so_far: str, *, prefill: bool) -> tuple[Message, ...]:
    """The conversation; a text to carry on ends it, as the reply's own beginning or with an instruction."""
    messages = live.conversation
    if live.run.unfinished_text:
        messages = messages[:-1]  # it is the beginning of `so_far`
    if not so_far.strip():
        return messages  # white space alone is nothing to go on from, and providers refuse an empty message
    if prefill:
        # Providers refuse one that ends in white space, and models go on better without (CHAIN-14).
        return (*messages, AssistantMessage(content=so_far.rstrip()))
    return (*messages, AssistantMessage(content=so_far), UserMessage(content=GO_ON))
