"""What every adapter keeps to: the same fault is the same failure, whoever reports it (CLASS-1)."""

import asyncio
from collections.abc import Awaitable
from contextlib import aclosing
from dataclasses import dataclass

import msgspec
import pytest

from app.models.accounts import Account
from app.models.adapters import build
from app.models.http import HttpSession
from app.models.port import ModelAdapter, NotSent, StillSilent
from app.models.provider_settings import ModelSettings, ProviderSettings, ProviderType
from app.models.scripted_settings import Behaviour, ScriptedCall, ScriptedError, ScriptedStatus
from domain.failure import FailureClass
from tests.models.calling import Answered, Failed, asking, completed, streamed
from tests.models.conftest import WIRES, adapter_of
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


@dataclass(frozen=True)
class Subject:
    """A provider of some type, and another one like it that cannot be reached."""

    kind: ProviderType
    adapter: ModelAdapter
    unreachable: ModelAdapter

    def facing(self, name: str) -> ModelAdapter:
        return self.unreachable if name == "refused" else self.adapter

    def expects(self, outcome: Answered | Failed) -> Answered | Failed:
        """The outcome in this provider's own codes: only the statuses are the same everywhere."""
        if self.kind in ("anthropic", "google") and isinstance(outcome, Failed) and outcome.status:
            return msgspec.structs.replace(
                outcome, code=OWN_CODES[self.kind].get(outcome.status, outcome.code)
            )
        return outcome


OWN_CODES: dict[ProviderType, dict[int, str]] = {
    "anthropic": {
        400: "invalid_request_error",
        401: "authentication_error",
        402: "billing_error",
        404: "not_found_error",
        413: "request_too_large",
        429: "rate_limit_error",
        500: "api_error",
        529: "overloaded_error",
    },
    "google": {
        400: "INVALID_ARGUMENT",
        401: "UNAUTHENTICATED",
        402: "UNKNOWN",
        404: "NOT_FOUND",
        408: "UNKNOWN",
        413: "UNKNOWN",
        429: "RESOURCE_EXHAUSTED",
        500: "INTERNAL",
        503: "UNAVAILABLE",
        529: "UNKNOWN",
    },
}


@pytest.fixture(params=[*WIRES.values(), "azure_openai", "scripted"])
async def subject(request: pytest.FixtureRequest, upstream: Upstream, http: HttpSession) -> Subject:
    kind: ProviderType = request.param
    if kind == "scripted":
        models = {name: ModelSettings(default=case.scripted) for name, case in CASES.items()}
        adapter = build(Account("scripted"), ProviderSettings(type="scripted", models=models), http, {})
        return Subject(kind, adapter, adapter)
    nowhere = adapter_of(kind, "http://127.0.0.1:1", http)
    return Subject(kind, adapter_of(kind, upstream.url, http), nowhere)


@pytest.mark.parametrize("name", CASES)
async def test_streamed_a_call_comes_to_the_same_whoever_makes_it(name: str, subject: Subject) -> None:
    """CLASS-1, CLASS-2, CLASS-4."""
    case = CASES[name]
    request = asking(name, first_content_timeout_s=case.first_content_s)
    assert await streamed(subject.facing(name), request) == subject.expects(case.outcome)


@pytest.mark.parametrize("name", CASES)
async def test_unstreamed_a_call_comes_to_the_same_whoever_makes_it(name: str, subject: Subject) -> None:
    """CLASS-1, CLASS-2, CLASS-4."""
    case = CASES[name]
    request = asking(name, first_content_timeout_s=case.first_content_s)
    assert await completed(subject.facing(name), request) == subject.expects(case.whole or case.outcome)


def never() -> bool:
    return False


async def ended(call: Awaitable[object], ready: asyncio.Event) -> type[BaseException]:
    """How the call ends when it is cancelled once it is ready for that."""

    async def told() -> type[BaseException] | None:
        try:
            await call
        except asyncio.CancelledError as cancelled:
            return type(cancelled)
        return None

    telling = asyncio.create_task(told())
    await ready.wait()
    await asyncio.sleep(0)
    telling.cancel()
    kind = await telling
    assert kind is not None, "the call came to its end"
    return kind


async def test_a_call_that_is_cancelled_before_anything_has_come_says_so(subject: Subject) -> None:
    """CLASS-2: what it means is for those to say who know why it was cancelled."""
    at_once = asyncio.Event()
    at_once.set()
    request = asking("silent", first_content_timeout_s=None)
    assert await ended(streamed(subject.adapter, request), at_once) is StillSilent
    assert await ended(completed(subject.adapter, request), at_once) is StillSilent


async def test_a_call_that_is_cancelled_in_the_middle_of_its_answer_was_not_silent(subject: Subject) -> None:
    """CLASS-2."""
    heard = asyncio.Event()

    async def listen() -> None:
        async with aclosing(subject.adapter.stream(asking("stall-2"))) as parts:
            async for _ in parts:
                heard.set()

    assert await ended(listen(), heard) is asyncio.CancelledError


async def test_a_call_that_may_not_leave_any_more_is_not_sent(subject: Subject, upstream: Upstream) -> None:
    """EVENT-3: it is asked when there is a connection, and another call can have that one then."""
    for _ in range(2):
        with pytest.raises(NotSent):
            await subject.adapter.complete(asking("text"), never)
        with pytest.raises(NotSent):
            await anext(subject.adapter.stream(asking("text"), never))
    assert not upstream.log.of("text")
    assert await completed(subject.adapter, asking("text")) == CASES["text"].outcome
    if subject.kind != "scripted":
        assert upstream.connections == 1


async def test_a_closed_adapter_makes_no_call(subject: Subject) -> None:
    adapter = subject.adapter
    await adapter.close()
    closed = Failed(kind="internal", failure_class=FailureClass.INTERNAL)
    assert await streamed(adapter, asking("text")) == closed
    assert await completed(adapter, asking("text")) == closed
