"""The body of a chat completion request, and the submission that it is."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from app.http.bodies import Body
from app.http.openai.answer_form import ResponseFormat, schema_of
from app.http.openai.asked import Metadata, Probability, Seed, Stop, Temperature, TokenLimit, options_of
from app.http.openai.content import Content, is_given, text_of
from app.http.openai.refusing import TOOLS_ARE_HERE, NotTaken, check_all, wrong
from app.supervision.run_service import StartRequest
from domain.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from domain.submission import Origin, Overrides

API = "openai.chat"
_SESSION = "session_id"
_NOT_TAKEN = {
    "tools": NotTaken((), why=TOOLS_ARE_HERE),
    "functions": NotTaken((), why=TOOLS_ARE_HERE),
    "tool_choice": NotTaken("auto", why=TOOLS_ARE_HERE),
    "function_call": NotTaken("auto", why=TOOLS_ARE_HERE),
    "web_search_options": NotTaken(why=TOOLS_ARE_HERE),
    "n": NotTaken(1, why="a run has one answer"),
    "logprobs": NotTaken(False),
    "top_logprobs": NotTaken(0),
    "frequency_penalty": NotTaken(0),
    "presence_penalty": NotTaken(0),
    "logit_bias": NotTaken({}),
    "audio": NotTaken(),
    "modalities": NotTaken((), ("text",), why="answers are text"),
    "moderation": NotTaken(),
}


class CalledFunction(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    arguments: str = ""


class CalledTool(msgspec.Struct, frozen=True, kw_only=True):
    """A call of the past, made by an assistant elsewhere."""

    id: str
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessage(msgspec.Struct, frozen=True, kw_only=True):
    """One message. What answers have besides (annotations and the like) may be sent back and is read over."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content | None = None
    tool_calls: tuple[CalledTool, ...] | None = None
    tool_call_id: str | None = None
    refusal: str | None = None
    function_call: Any = None

    def plain(self, where: str) -> Message:
        """Raise BadBody for what no message of this role can be."""
        if is_given(self.function_call):
            raise wrong(f"{where}.function_call", "is not supported; tool_calls is")
        if self.role == "assistant":
            return self._said(where)
        if self.content is None:
            raise wrong(f"{where}.content", "is missing")
        text = text_of(self.content, f"{where}.content")
        if self.role != "tool":
            return UserMessage(content=text) if self.role == "user" else SystemMessage(content=text)
        if self.tool_call_id is None:
            raise wrong(f"{where}.tool_call_id", "is missing")
        return ToolMessage(tool_call_id=self.tool_call_id, content=text)

    def _said(self, where: str) -> Message:
        calls = tuple(
            ToolCall(id=call.id, name=call.function.name, arguments=call.function.arguments)
            for call in self.tool_calls or ()
        )
        text = "" if self.content is None else text_of(self.content, f"{where}.content")
        if not text and not calls and not self.refusal:
            raise wrong(f"{where}.content", "is missing")
        return AssistantMessage(content=text or self.refusal or "", tool_calls=calls)


class StreamOptions(Body, frozen=True, kw_only=True):
    include_usage: bool | None = None
    """A last chunk without choices has the usage of the whole run."""
    include_obfuscation: bool | None = None
    """Nothing is obfuscated."""


class ChatCompletionRequest(Body, frozen=True, kw_only=True):
    """A run of the agent that `model` names. What is given here stands above the agent's own options.

    Fields that ask for what an agent cannot be asked for are refused unless they ask for nothing. Hints
    (`user`, `store`, `service_tier`, `reasoning_effort` and the like) are taken and change nothing.
    """

    model: Annotated[str, Meta(min_length=1)]
    messages: Annotated[tuple[ChatMessage, ...], Meta(min_length=1)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    metadata: Metadata | None = None
    """Labels. `session_id` among them names the session that the run continues."""
    temperature: Temperature | None = None
    top_p: Probability | None = None
    max_tokens: TokenLimit | None = None
    max_completion_tokens: TokenLimit | None = None
    stop: Stop | None = None
    seed: Seed | None = None
    response_format: ResponseFormat | None = None

    n: int | None = None
    tools: tuple[Any, ...] | None = None
    functions: tuple[Any, ...] | None = None
    tool_choice: Any = None
    function_call: Any = None
    web_search_options: Any = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    frequency_penalty: float | None = None
    presence_penalty: float | None = None
    logit_bias: dict[str, float] | None = None
    audio: Any = None
    modalities: tuple[str, ...] | None = None
    moderation: Any = None

    user: str | None = None
    store: bool | None = None
    service_tier: str | None = None
    parallel_tool_calls: bool | None = None
    prediction: Any = None
    reasoning_effort: str | None = None
    verbosity: str | None = None
    safety_identifier: str | None = None
    prompt_cache_key: str | None = None
    prompt_cache_options: Any = None
    prompt_cache_retention: str | None = None

    @property
    def wants_usage(self) -> bool:
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    def submission(self, tenant: str) -> StartRequest:
        """Raise BadBody for what types cannot say."""
        check_all(self, _NOT_TAKEN)
        return StartRequest(
            tenant=tenant,
            agent=self.model,
            messages=tuple(
                message.plain(f"messages[{number}]") for number, message in enumerate(self.messages)
            ),
            session_id=self._session(),
            streaming=bool(self.stream),
            overrides=self._overrides(),
            origin=Origin(api=API, echo={"metadata": self.metadata} if self.metadata else {}),
        )

    def _session(self) -> str | None:
        session_id = (self.metadata or {}).get(_SESSION)
        if session_id is not None and not (0 < len(session_id) <= 200 and session_id.isprintable()):
            raise wrong(f"metadata.{_SESSION}", "must be printable, and 1 to 200 characters long")
        return session_id

    def _overrides(self) -> Overrides | None:
        limits = {self.max_tokens, self.max_completion_tokens} - {None}
        if len(limits) > 1:
            raise wrong("max_tokens", "differs from max_completion_tokens; give one of them")
        asked = Overrides(
            options=options_of(
                temperature=self.temperature,
                top_p=self.top_p,
                max_output_tokens=next(iter(limits), None),
                stop=self.stop,
                seed=self.seed,
            ),
            response_schema=schema_of(self.response_format, "response_format"),
        )
        return None if asked == Overrides() else asked
