"""The routes of the API that is OpenAI's, beside the one where an agent is called by its name in the body."""

from app.http.openai.chat import create_chat_completion
from app.http.openai.chat_request import ChatCompletionRequest
from app.http.openai.completion import ChatCompletion
from app.http.openai.conversations import (
    ConversationItemList,
    ConversationObject,
    ConversationRequest,
    ItemsQuery,
    create_conversation,
    get_conversation,
    list_items,
)
from app.http.openai.models import Model, ModelList, get_model, list_models
from app.http.openai.response_object import ResponseObject
from app.http.openai.response_request import ResponseRequest
from app.http.openai.responses import ResponseQuery, cancel_response, create_response, get_response
from app.http.route import Route, get, post
from app.keys.key import Scope

READ, RUN = Scope.READ, Scope.RUN
_OF_RUNS = (404, 409, 413, 415, 422, 429, 501, 502, 503, 504)
_CHUNKS = (
    "With `stream`: server-sent events, each a chunk of the completion, and `[DONE]` after the last. A run "
    "that fails before its first words is answered with its status; one that fails later ends with a frame "
    "whose data is an ApiErrorBody, without `[DONE]`."
)
_EVENTS = (
    "With `stream`: server-sent events, each with its `type` and a `sequence_number`. It ends after "
    "`response.completed`, `response.incomplete` or `response.failed`; an event `error` means that the "
    "stream broke off and can be resumed with `starting_after`, on any host."
)

# fmt: off
OPENAI_ROUTES: tuple[Route, ...] = (
    post("/v1/chat/completions", create_chat_completion, "Run an agent as a chat completion", ChatCompletion,
         streams=True, about_stream=_CHUNKS, keyed=True, scope=RUN, body=ChatCompletionRequest,
         errors=_OF_RUNS),
    post("/v1/responses", create_response, "Run an agent as a response", ResponseObject, streams=True,
         about_stream=_EVENTS, keyed=True, scope=RUN, body=ResponseRequest, errors=_OF_RUNS),
    get("/v1/responses/{id}", get_response, "A response, or its events from any place on", ResponseObject,
        streams=True, about_stream=_EVENTS, scope=READ, query=ResponseQuery, errors=(404, 503)),
    post("/v1/responses/{id}/cancel", cancel_response, "Ask a response to stop", ResponseObject, scope=RUN,
         errors=(404, 409, 503)),
    post("/v1/conversations", create_conversation, "Begin a conversation", ConversationObject, scope=RUN,
         body=ConversationRequest, body_required=False, errors=(413, 415, 503)),
    get("/v1/conversations/{id}", get_conversation, "One conversation", ConversationObject, scope=READ,
        errors=(404, 503)),
    get("/v1/conversations/{id}/items", list_items, "The messages of a conversation", ConversationItemList,
        scope=READ, query=ItemsQuery, errors=(404, 503)),
    get("/v1/models", list_models, "The agents, as models", ModelList, scope=READ, errors=(503,)),
    get("/v1/models/{name}", get_model, "One agent, as a model", Model, scope=READ, errors=(404, 503)),
)
# fmt: on
