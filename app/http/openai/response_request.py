"""The body of a response request, and the submission that it is."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from app.http.bodies import Body, QueueBody
from app.http.openai.answer_form import TextFormat, schema_of
from app.http.openai.asked import Metadata, Probability, Temperature, TokenLimit, options_of
from app.http.openai.refusing import TOOLS_ARE_HERE, NotTaken, check_all, wrong
from app.http.openai.response_items import Input, messages_of
from app.http.openai.response_object import ConversationRef, ResponseEcho, TextConfig
from app.settings import AsyncRunSettings
from app.supervision.run_service import StartRequest
from domain.submission import Origin, Overrides

API = "openai.responses"
_NOT_TAKEN = {
    "tools": NotTaken((), why=TOOLS_ARE_HERE),
    "tool_choice": NotTaken("auto", why=TOOLS_ARE_HERE),
    "max_tool_calls": NotTaken(why=TOOLS_ARE_HERE),
    "prompt": NotTaken(why="there are no prompt templates; an agent has its instructions"),
    "top_logprobs": NotTaken(0),
    "context_management": NotTaken(()),
    "image": NotTaken(),
    "moderation": NotTaken(),
    "access_programs": NotTaken(),
}


class TextOptions(Body, frozen=True, kw_only=True):
    format: TextFormat | None = None
    verbosity: str | None = None


class ResponseRequest(Body, frozen=True, kw_only=True):
    """A run of the agent that `model` names. What is given here stands above the agent's own options.

    Fields that ask for what an agent cannot be asked for are refused unless they ask for nothing. Hints
    (`reasoning`, `include`, `service_tier` and the like) are taken and change nothing.
    """

    model: Annotated[str, Meta(min_length=1)]
    input: Input
    instructions: str | None = None
    """They follow the agent's own, for this response only."""
    previous_response_id: str | None = None
    """The response whose conversation this one goes on from."""
    conversation: str | ConversationRef | None = None
    """The conversation that this response becomes part of."""
    store: bool | None = None
    """False: it can neither be read again here nor be gone on from. The run is kept all the same."""
    metadata: Metadata | None = None
    stream: bool | None = None
    background: bool | None = None
    """Leave it to a worker, and answer at once with a response that is queued."""
    temperature: Temperature | None = None
    top_p: Probability | None = None
    max_output_tokens: TokenLimit | None = None
    text: TextOptions | None = None

    tools: tuple[Any, ...] | None = None
    tool_choice: Any = None
    max_tool_calls: int | None = None
    prompt: Any = None
    top_logprobs: int | None = None
    context_management: tuple[Any, ...] | None = None
    image: Any = None
    moderation: Any = None
    access_programs: Any = None

    include: tuple[str, ...] | None = None
    reasoning: Any = None
    parallel_tool_calls: bool | None = None
    service_tier: str | None = None
    stream_options: Any = None
    background_options: Any = None
    truncation: Literal["auto", "disabled"] | None = None
    user: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: Any = None
    prompt_cache_retention: str | None = None

    @property
    def conversation_id(self) -> str | None:
        return self.conversation.id if isinstance(self.conversation, ConversationRef) else self.conversation

    def submission(self, tenant: str, settings: AsyncRunSettings) -> StartRequest:
        """Where its history comes from is left open. Raise BadBody for what types cannot say."""
        check_all(self, _NOT_TAKEN)
        if self.background and self.store is False:
            raise wrong("store", "what runs in the background must be stored, for nobody waits for it")
        if self.previous_response_id is not None and self.conversation is not None:
            raise wrong("previous_response_id", "cannot be given together with conversation")
        messages = messages_of(self.input, "input")
        if not messages:
            raise wrong("input", "is empty")
        return StartRequest(
            tenant=tenant,
            agent=self.model,
            messages=messages,
            streaming=bool(self.stream),
            overrides=self._overrides(),
            origin=Origin(api=API, echo=msgspec.to_builtins(self._echo())),
            queue=QueueBody().spec(settings) if self.background else None,
        )

    def _overrides(self) -> Overrides | None:
        asked = Overrides(
            options=options_of(
                temperature=self.temperature, top_p=self.top_p, max_output_tokens=self.max_output_tokens
            ),
            response_schema=schema_of(self.text.format if self.text else None, "text.format"),
            instructions=self.instructions or "",
        )
        return None if asked == Overrides() else asked

    def _echo(self) -> ResponseEcho:
        conversation, format_ = self.conversation_id, self.text.format if self.text else None
        return ResponseEcho(
            store=self.store is not False,
            metadata=self.metadata or {},
            previous_response_id=self.previous_response_id,
            conversation=ConversationRef(id=conversation) if conversation else None,
            text=TextConfig(format=format_) if format_ else TextConfig(),
            background=bool(self.background),
            truncation=self.truncation or "disabled",
            user=self.user,
            safety_identifier=self.safety_identifier,
            prompt_cache_key=self.prompt_cache_key,
        )
