"""From a provider's settings to the way it is spoken to."""

from collections.abc import Callable

from multidict import CIMultiDict

from app.models.anthropic import MessagesDialect
from app.models.dialect import Dialect
from app.models.endpoint import Endpoint
from app.models.google import GeminiDialect
from app.models.openai_chat import ChatDialect
from app.models.openai_responses import ResponsesDialect
from app.models.provider_settings import ProviderSettings, ProviderType

_ANTHROPIC_VERSION = "2023-06-01"

VENDORS: dict[ProviderType, str] = {
    "openai": "https://api.openai.com/v1",
    "openai_responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
}
"""Where each type of provider is when the settings do not say."""


def dialect_of(name: str, settings: ProviderSettings, key: str | None) -> Dialect:
    """The dialect of a provider behind HTTP."""
    return _DIALECTS[settings.type](name, settings, key)


def endpoint_of(settings: ProviderSettings, key: str | None) -> Endpoint:
    """Where a provider behind HTTP is, and what stands in the headers of its requests."""
    match settings.type:
        case "azure_openai":
            return _endpoint(settings, key, {"api-key": key} if key else {})
        case "anthropic":
            headers = {"anthropic-version": _ANTHROPIC_VERSION} | ({"x-api-key": key} if key else {})
            return _endpoint(settings, key, headers)
        case "google":
            return _endpoint(settings, key, {"x-goog-api-key": key} if key else {})
        case _:
            return _openai_endpoint(settings, key)


def model_list_of(settings: ProviderSettings, endpoint: Endpoint) -> str:
    """The address of a provider's list of models, one entry of it where that can be asked for."""
    match settings.type:
        case "azure_openai" if settings.api_version is None:
            return f"{endpoint.base}/openai/v1/models"
        case "azure_openai":
            return f"{endpoint.base}/openai/models?api-version={settings.api_version}"
        case "anthropic":
            return endpoint.versioned("models") + "?limit=1"
        case "google":
            return endpoint.versioned("models", "v1beta") + "?pageSize=1"
        case _:
            return f"{endpoint.base}/models"


def _chat(name: str, settings: ProviderSettings, key: str | None) -> Dialect:
    newer = settings.base_url is None
    return _chat_at(settings, endpoint_of(settings, key), url=None, newer=newer)


def _azure(name: str, settings: ProviderSettings, key: str | None) -> Dialect:
    base = f"{_base(settings)}/openai"
    endpoint = endpoint_of(settings, key)
    if settings.api_version is None:
        return _chat_at(settings, endpoint, url=f"{base}/v1/chat/completions", newer=True)
    url = f"{base}/deployments/{{model}}/chat/completions?api-version={settings.api_version}"
    return _chat_at(settings, endpoint, url=url, newer=True)


def _chat_at(settings: ProviderSettings, endpoint: Endpoint, *, url: str | None, newer: bool) -> Dialect:
    return ChatDialect(
        endpoint,
        url=url,
        instructions_role=settings.instructions_role,
        max_tokens_field=settings.max_tokens_field or ("max_completion_tokens" if newer else "max_tokens"),
        stream_usage=settings.stream_usage,
        short_call_ids=settings.tool_call_ids == "short",
    )


def _responses(name: str, settings: ProviderSettings, key: str | None) -> Dialect:
    endpoint = endpoint_of(settings, key)
    return ResponsesDialect(name, endpoint, instructions_role=settings.instructions_role)


def _messages(name: str, settings: ProviderSettings, key: str | None) -> Dialect:
    limits = {model: known.max_output_tokens for model, known in settings.models.items()}
    max_tokens = {model: limit for model, limit in limits.items() if limit is not None}
    return MessagesDialect(name, endpoint_of(settings, key), max_tokens=max_tokens)


def _gemini(name: str, settings: ProviderSettings, key: str | None) -> Dialect:
    return GeminiDialect(name, endpoint_of(settings, key))


_DIALECTS: dict[ProviderType, Callable[[str, ProviderSettings, str | None], Dialect]] = {
    "openai": _chat,
    "openai_responses": _responses,
    "azure_openai": _azure,
    "anthropic": _messages,
    "google": _gemini,
}


def _openai_endpoint(settings: ProviderSettings, key: str | None) -> Endpoint:
    given = {
        "Authorization": f"Bearer {key}" if key else None,
        "OpenAI-Organization": settings.organization,
        "OpenAI-Project": settings.project,
    }
    return _endpoint(settings, key, {name: value for name, value in given.items() if value})


def _endpoint(settings: ProviderSettings, key: str | None, headers: dict[str, str]) -> Endpoint:
    """The settings' own headers come last: a gateway may want other credentials than the vendor."""
    merged = CIMultiDict(headers)
    merged.update(settings.headers)
    return Endpoint(base=_base(settings), headers=dict(merged), secrets=(key,) if key else ())


def _base(settings: ProviderSettings) -> str:
    return (settings.base_url or VENDORS[settings.type]).rstrip("/")
