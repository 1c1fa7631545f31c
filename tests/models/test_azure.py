"""Azure: Chat Completions under another address, with filters that speak up."""

import json

from app.models.accounts import Account
from app.models.adapters import build
from app.models.endpoint import Endpoint
from app.models.http import HttpSession
from app.models.openai_chat import ChatDialect
from app.models.port import ModelRequest
from app.models.provider_settings import ProviderSettings
from app.models.sse import SseEvent
from domain.agent import ModelOptions
from tests.models.calling import Answered, asking, streamed
from tests.upstream.server import Upstream


async def test_a_model_is_a_deployment_of_its_own_address_or_a_name_in_the_body(
    upstream: Upstream, http: HttpSession
) -> None:
    for api_version in ("2024-10-21", None):
        settings = ProviderSettings(
            type="azure_openai", base_url=upstream.url, api_key_env="KEY", api_version=api_version
        )
        adapter = build(Account("p"), settings, http, {"KEY": "k"})
        request = asking("text", options=ModelOptions(max_output_tokens=9))
        assert await streamed(adapter, request) == Answered(text="Hello there you.")
    dated, undated = upstream.log.of("text")
    assert dated.path == "/openai/deployments/text/chat/completions?api-version=2024-10-21"
    assert undated.path == "/openai/v1/chat/completions"
    assert dated.headers["api-key"] == undated.headers["api-key"] == "k"
    assert dated.body["max_completion_tokens"] == 9


def test_what_the_filters_say_about_the_question_is_no_content() -> None:
    """CLASS-2: the first chunk has no choices at all."""
    stream = ChatDialect(Endpoint(base="http://localhost")).stream(ModelRequest(model="m", messages=()))
    first = {"choices": [], "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {}}]}
    assert stream.read(SseEvent(b"", json.dumps(first).encode())) == ""
    assert not stream.begun
    assert not stream.finished


def test_a_deployments_name_is_one_segment_of_the_path() -> None:
    dialect = ChatDialect(
        Endpoint(base="http://h"), url="http://h/openai/deployments/{model}/chat/completions"
    )
    url = dialect.post(ModelRequest(model="../a b", messages=()), stream=False).url
    assert str(url) == "http://h/openai/deployments/..%2Fa%20b/chat/completions"
