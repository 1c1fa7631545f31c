"""What every adapter keeps to: the same fault is the same failure, whoever reports it (CLASS-1)."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from app.models.adapters import build
from app.models.http import HttpSession
from app.models.port import ModelAdapter
from app.models.provider_settings import ModelSettings, ProviderSettings
from app.models.scripted_settings import Behaviour, ScriptedCall, ScriptedError, ScriptedStatus
from domain.failure import FailureClass
from tests.models.calling import Answered, Failed, asking, completed, streamed
from tests.models.conftest import KEY
from tests.upstream.server import Upstream

WEATHER = ScriptedCall(name="get_weather", arguments='{"city": "Paris"}')
CLOCK = ScriptedCall(name="get_time", arguments='{"zone": "UTC"}')
TRANSIENT, UNAVAILABLE = FailureClass.TRANSIENT, FailureClass.UNAVAILABLE
INVALID, AUTH = FailureClass.INVALID, FailureClass.AUTH


@dataclass(frozen=True)
class Case:
    """A model of the upstream, the same in a script, and what both come to; `whole`: unstreamed."""

    scripted: Behaviour
    outcome: Answered | Failed
    whole: Answered | Failed | None = None
    first_content_s: float | None = 5.0


def refused(
    number: int, code: str, failure_class: FailureClass, retry_after: float | None = None, text: str = ""
) -> Case:
    scripted = ScriptedStatus(status=number, code=code, retry_after=retry_after, message=text)
    failed = Failed(
        kind="status", status=number, code=code, failure_class=failure_class, retry_after_s=retry_after
    )
    return Case(Behaviour(status=scripted), failed)


def reported(code: str, status: int | None, failure_class: FailureClass) -> Case:
    failed = Failed(kind="reported", status=status, code=code, failure_class=failure_class)
    return Case(Behaviour(error=ScriptedError(code=code)), failed)


RESET = Failed(kind="reset", failure_class=TRANSIENT)
SILENT = Failed(kind="silent", failure_class=UNAVAILABLE)
FILTERED = Failed(kind="content_filter", code="content_filter", failure_class=FailureClass.CONTENT_FILTERED)

CASES = {
    "text": Case(Behaviour(text="Hello there you."), Answered(text="Hello there you.")),
    "tools": Case(
        Behaviour(text="Let me look.", tool_calls=(WEATHER, CLOCK)),
        Answered(
            text="Let me look.",
            calls=(("get_weather", '{"city": "Paris"}'), ("get_time", '{"zone": "UTC"}')),
            finish="tool_calls",
        ),
    ),
    "tool-only": Case(
        Behaviour(tool_call=WEATHER),
        Answered(calls=(("get_weather", '{"city": "Paris"}'),), finish="tool_calls"),
    ),
    "length": Case(Behaviour(length="Once upon a "), Answered(text="Once upon a ", finish="length")),
    "empty": Case(Behaviour(empty=True), Failed(kind="empty", failure_class=FailureClass.EMPTY)),
    "content-filter": Case(Behaviour(content_filter=True), FILTERED),
    "400": refused(400, "invalid_value", INVALID),
    "401": refused(401, "invalid_api_key", AUTH),
    "402": refused(402, "billing_error", INVALID),
    "404": refused(404, "model_not_found", INVALID),
    "408": refused(408, "timeout", TRANSIENT),
    "413": refused(413, "request_too_large", INVALID),
    "429": refused(429, "rate_limit_exceeded", UNAVAILABLE),
    "429-after-1": refused(429, "rate_limit_exceeded", TRANSIENT, retry_after=1),
    "429-after-60": refused(429, "rate_limit_exceeded", UNAVAILABLE, retry_after=60),
    "429-no-quota": refused(429, "insufficient_quota", UNAVAILABLE),
    "500": refused(500, "server_error", TRANSIENT),
    "503": refused(503, "service_unavailable", UNAVAILABLE, retry_after=5),
    "529": refused(529, "overloaded_error", UNAVAILABLE),
    "reports-500": reported("server_error", 500, TRANSIENT),
    "reports-overload": reported("overloaded_error", 529, UNAVAILABLE),
    "reports-rate-limit": reported("rate_limit_exceeded", 429, UNAVAILABLE),
    "reports-unknown": reported("gremlins", None, FailureClass.ERROR_PRE),
    "200-page": Case(
        Behaviour(unreadable=True), Failed(kind="unreadable", status=200, failure_class=TRANSIENT)
    ),
    "reset": Case(Behaviour(reset=True), RESET),
    "cut-0": Case(Behaviour(cut_after=0), RESET),
    "cut-2": Case(
        Behaviour(text="Hello there ", cut_after=2),
        Failed(kind="reset", failure_class=TRANSIENT, delivered="Hello there "),
        whole=RESET,
    ),
    "stall-2": Case(
        Behaviour(text="Hello there ", stall_after=2),
        Failed(kind="stalled", failure_class=TRANSIENT, delivered="Hello there "),
        whole=SILENT,
        first_content_s=0.3,
    ),
    "silent": Case(Behaviour(silent=True), SILENT, first_content_s=0.3),
    "refused": Case(Behaviour(refused=True), Failed(kind="connect", failure_class=UNAVAILABLE)),
}


@pytest.fixture(params=["chat", "scripted"])
async def adapters(
    request: pytest.FixtureRequest, upstream: Upstream, http: HttpSession
) -> AsyncIterator[tuple[ModelAdapter, ModelAdapter]]:
    """The adapter under test, and the same for a provider that cannot be reached."""
    if request.param == "scripted":
        models = {name: ModelSettings(default=case.scripted) for name, case in CASES.items()}
        adapter = build("scripted", ProviderSettings(type="scripted", models=models), http, {})
        yield adapter, adapter
        return
    there = ProviderSettings(type="openai", base_url=f"{upstream.url}/v1", api_key_env="KEY")
    nowhere = ProviderSettings(type="openai", base_url="http://127.0.0.1:1/v1")
    yield build("there", there, http, {"KEY": KEY}), build("nowhere", nowhere, http, {})


@pytest.mark.parametrize("name", CASES)
async def test_streamed_a_call_comes_to_the_same_whoever_makes_it(
    name: str, adapters: tuple[ModelAdapter, ModelAdapter]
) -> None:
    """CLASS-1, CLASS-2, CLASS-4."""
    case, adapter = CASES[name], adapters[name == "refused"]
    request = asking(name, first_content_timeout_s=case.first_content_s)
    assert await streamed(adapter, request) == case.outcome


@pytest.mark.parametrize("name", CASES)
async def test_unstreamed_a_call_comes_to_the_same_whoever_makes_it(
    name: str, adapters: tuple[ModelAdapter, ModelAdapter]
) -> None:
    """CLASS-1, CLASS-2, CLASS-4."""
    case, adapter = CASES[name], adapters[name == "refused"]
    request = asking(name, first_content_timeout_s=case.first_content_s)
    assert await completed(adapter, request) == (case.whole or case.outcome)


async def test_a_closed_adapter_makes_no_call(adapters: tuple[ModelAdapter, ModelAdapter]) -> None:
    adapter, _ = adapters
    await adapter.close()
    closed = Failed(kind="internal", failure_class=FailureClass.INTERNAL)
    assert await streamed(adapter, asking("text")) == closed
    assert await completed(adapter, asking("text")) == closed
