"""The wall: what an adapter makes of everything that goes wrong on a real socket."""

import asyncio
import socket
from contextlib import aclosing

import msgspec
import pytest

from app.models.accounts import Account
from app.models.adapters import build
from app.models.http import HttpSession
from app.models.patience import TimeLimits
from app.models.port import ModelAdapter, TextChunk
from app.models.provider_settings import ProviderSettings, ProviderTimeouts
from domain.failure import FailureClass
from tests.models.calling import Answered, Failed, asking, completed, failure_of, streamed
from tests.upstream.server import Upstream

TRANSIENT, UNAVAILABLE = FailureClass.TRANSIENT, FailureClass.UNAVAILABLE
HELLO = Answered(text="Hello there.")
RESET = Failed(kind="reset", failure_class=TRANSIENT)
CUT = Failed(kind="reset", failure_class=TRANSIENT, delivered="Hello there ")
SILENT = Failed(kind="silent", failure_class=UNAVAILABLE)
LIMITED = "rate_limit_exceeded"

STREAMED: dict[str, Answered | Failed] = {
    "unicode": Answered(text="Grüße 日本 🛫"),
    "byte-by-byte": Answered(text="Grüße 🛫\n\nbye"),
    "crlf": HELLO,
    "comments-then-text": HELLO,
    "200-json-whole": HELLO,
    "200-json-error": Failed(kind="reported", status=429, code=LIMITED, failure_class=UNAVAILABLE),
    "200-nothing": RESET,
    "content-filter-late": Failed(
        kind="content_filter",
        code="content_filter",
        failure_class=FailureClass.CONTENT_FILTERED,
        delivered="Well, ",
    ),
    "reports-late": Failed(
        kind="reported", status=500, code="server_error", failure_class=TRANSIENT, delivered="Hello "
    ),
    "reset-after-preamble": RESET,
    "cut-in-tool-call": RESET,
    "not-http": Failed(kind="unreadable", failure_class=TRANSIENT),
}


def in_no_words(outcome: Answered | Failed) -> Answered | Failed:
    """Without the code of a reported error, which every wire spells in its own way."""
    if isinstance(outcome, Failed) and outcome.kind == "reported":
        return msgspec.structs.replace(outcome, code=None)
    return outcome


@pytest.mark.parametrize("name", STREAMED)
async def test_a_stream_is_read_as_what_it_is(name: str, adapter: ModelAdapter, upstream: Upstream) -> None:
    """CLASS-1, CLASS-4, CHAIN-7, CHAIN-14; C1, C2, C6, C8, C10."""
    assert in_no_words(await streamed(adapter, asking(name))) == in_no_words(STREAMED[name])
    assert len(upstream.log.of(name)) == 1, "one call is one attempt"


WITHOUT_FINISH = ["ends-without-finish", "terminator-without-finish"]
WITH_FINISH = [
    "no-terminator",
    "fin-after-finish",
    "reset-after-finish",
    "hangs-after-finish",
    "reports-after-finish",
]


@pytest.mark.parametrize("name", WITHOUT_FINISH)
async def test_a_stream_without_its_finish_reason_is_a_cut_whatever_ends_it(
    name: str, adapter: ModelAdapter
) -> None:
    """CHAIN-14: never a success."""
    assert await streamed(adapter, asking(name)) == CUT


@pytest.mark.parametrize("name", WITH_FINISH)
async def test_a_stream_that_ends_after_its_finish_reason_is_complete(
    name: str, adapter: ModelAdapter
) -> None:
    """CHAIN-14."""
    assert await streamed(adapter, asking(name)) == HELLO


async def test_what_came_before_the_connection_broke_is_not_lost(
    adapter: ModelAdapter, upstream: Upstream
) -> None:
    """CHAIN-14: while the caller was busy, the rest, the finish reason and the end arrived together."""
    text = ""
    async with aclosing(adapter.stream(asking("rest-and-fin-behind-the-gate"))) as parts:
        async for part in parts:
            if isinstance(part, TextChunk):
                text += part.text
                upstream.log.only("rest-and-fin-behind-the-gate").gate.set()
                await upstream.deserted()
    assert text == "Hello there."


async def test_after_the_finish_reason_the_wait_is_short(upstream: Upstream) -> None:
    """CHAIN-14: a server that keeps the stream open holds nobody up."""
    http = HttpSession(TimeLimits(connect_s=2, idle_s=30, tail_s=0.1, call_s=40))
    adapter = build(Account("p"), ProviderSettings(type="openai", base_url=f"{upstream.url}/v1"), http, {})
    async with asyncio.timeout(10):
        assert await streamed(adapter, asking("hangs-after-finish")) == HELLO
        assert await streamed(adapter, asking("comments-after-finish")) == HELLO
    await http.close()


async def test_a_broken_event_is_skipped_and_logged(
    adapter: ModelAdapter, caplog: pytest.LogCaptureFixture
) -> None:
    """CHAIN-14."""
    assert await streamed(adapter, asking("broken-event")) == HELLO
    assert [record.message for record in caplog.records] == ["broken stream event skipped"] * 3


async def test_a_line_without_end_is_not_held(chat: ModelAdapter) -> None:
    outcome = await streamed(chat, asking("endless-line"))
    assert outcome == Failed(kind="unreadable", failure_class=TRANSIENT, delivered="Hello ")


STATUSES = {
    "422": Failed(kind="status", status=422, code="unprocessable", failure_class=FailureClass.INVALID),
    "context-overflow": Failed(
        kind="status", status=400, code="context_length_exceeded", failure_class=FailureClass.INVALID
    ),
    "504": Failed(kind="status", status=504, code="timeout_error", failure_class=TRANSIENT),
    "redirect": Failed(kind="status", status=307, code="moved", failure_class=TRANSIENT),
    "502-page": Failed(kind="status", status=502, failure_class=TRANSIENT),
    "503-page": Failed(kind="status", status=503, failure_class=UNAVAILABLE),
    "500-endless": Failed(kind="status", status=500, failure_class=TRANSIENT),
    "filtered-prompt": Failed(
        kind="status",
        status=400,
        code="content_filter",
        failure_class=FailureClass.CONTENT_FILTERED,
    ),
    "429-after-ms": Failed(
        kind="status", status=429, code=LIMITED, retry_after_s=1.5, failure_class=TRANSIENT
    ),
    "429-after-date": Failed(
        kind="status", status=429, code=LIMITED, retry_after_s=30, failure_class=UNAVAILABLE
    ),
    "429-after-nonsense": Failed(kind="status", status=429, code=LIMITED, failure_class=UNAVAILABLE),
}


@pytest.mark.parametrize("name", STATUSES)
async def test_the_status_is_read_from_the_response(
    name: str, chat: ModelAdapter, upstream: Upstream
) -> None:
    """CLASS-4: error pages of proxies too; Retry-After as seconds, milliseconds and dates (CLASS-1)."""
    assert await streamed(chat, asking(name)) == STATUSES[name]
    assert await completed(chat, asking(name)) == STATUSES[name]
    assert len(upstream.log.of(name)) == 2, "no redirect is followed and nothing is tried twice"


WHOLE: dict[str, Answered | Failed] = {
    "200-nothing": RESET,
    "200-no-json": Failed(kind="unreadable", status=200, failure_class=TRANSIENT),
    "200-json-error": Failed(kind="reported", status=429, code=LIMITED, failure_class=UNAVAILABLE),
}


@pytest.mark.parametrize("name", WHOLE)
async def test_a_body_is_read_as_what_it_is(name: str, adapter: ModelAdapter) -> None:
    """CLASS-1, CLASS-4."""
    assert in_no_words(await completed(adapter, asking(name))) == in_no_words(WHOLE[name])


@pytest.mark.parametrize("name", ["silent", "silent-after-preamble", "comments-only"])
async def test_preamble_and_comments_are_no_content(name: str, adapter: ModelAdapter) -> None:
    """CLASS-2: neither headers nor a role nor a sign of life from a proxy ends the wait for content."""
    request = asking(name, first_content_timeout_s=0.2)
    assert await streamed(adapter, request) == SILENT
    assert await completed(adapter, request) == SILENT


async def test_thinking_ends_the_wait_for_content_but_delivers_nothing(adapter: ModelAdapter) -> None:
    """CLASS-2: a model that thinks is alive; when it then falls silent, nothing was handed on yet."""
    outcome = await streamed(adapter, asking("thinks-then-hangs", first_content_timeout_s=0.2))
    assert outcome == Failed(kind="stalled", failure_class=TRANSIENT)


async def test_the_last_link_waits_for_content_as_long_as_the_call_may_take(
    upstream: Upstream, http: HttpSession
) -> None:
    """CLASS-2: without a limit in the request, silence between chunks does not bound it either."""
    settings = ProviderSettings(type="openai", base_url=f"{upstream.url}/v1")
    patient = HttpSession(TimeLimits(connect_s=2, idle_s=0.05, call_s=0.4))
    began = asyncio.get_running_loop().time()
    outcome = await streamed(
        build(Account("p"), settings, patient, {}),
        asking("silent-after-preamble", first_content_timeout_s=None),
    )
    await patient.close()
    assert outcome == SILENT
    assert asyncio.get_running_loop().time() - began >= 0.4


async def test_an_answer_that_takes_too_long_as_a_whole_is_cut_off(upstream: Upstream) -> None:
    """CLASS-2: whole call."""
    http = HttpSession(TimeLimits(connect_s=2, idle_s=5, call_s=0.3))
    adapter = build(Account("p"), ProviderSettings(type="openai", base_url=f"{upstream.url}/v1"), http, {})
    outcome = await streamed(adapter, asking("stall-2"))
    await http.close()
    assert outcome == Failed(kind="stalled", failure_class=TRANSIENT, delivered="Hello there ")


async def test_a_body_that_stops_in_the_middle_is_a_stall(chat: ModelAdapter) -> None:
    """CLASS-2: unstreamed, the first bytes of the body end the wait for content."""
    outcome = await completed(chat, asking("stall-in-body"))
    assert outcome == Failed(kind="stalled", failure_class=TRANSIENT)


async def test_a_connection_that_cannot_be_made_in_time_is_unavailable() -> None:
    """CLASS-2: connect. The listener's queue is full, so the handshake is never answered."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        fillers = [socket.socket() for _ in range(8)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(listener.getsockname())
        http = HttpSession(TimeLimits(connect_s=0.2))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        adapter = build(Account("p"), ProviderSettings(type="openai", base_url=url), http, {})
        outcome = await streamed(adapter, asking("text"))
        await http.close()
        for filler in fillers:
            filler.close()
    assert outcome == Failed(kind="connect", failure_class=UNAVAILABLE)


@pytest.mark.parametrize("address", ["http://does-not-exist.invalid/v1", "https://127.0.0.1:{port}/v1"])
async def test_no_name_and_no_tls_are_no_connection(
    address: str, upstream: Upstream, http: HttpSession
) -> None:
    """CLASS: DNS or TLS failure."""
    url = address.format(port=upstream.port)
    adapter = build(Account("p"), ProviderSettings(type="openai", base_url=url), http, {})
    assert await streamed(adapter, asking("text")) == Failed(kind="connect", failure_class=UNAVAILABLE)


async def test_a_providers_own_limits_take_the_place_of_the_common_ones(
    upstream: Upstream, http: HttpSession
) -> None:
    settings = ProviderSettings(
        type="openai",
        base_url=f"{upstream.url}/v1",
        timeouts=ProviderTimeouts(first_content=0.2, stream_idle=0.1),
    )
    adapter = build(Account("p"), settings, http, {})
    failure = await failure_of(adapter, asking("silent"))
    assert failure.message == "no content within 0.2 s"
    failure = await failure_of(adapter, asking("stall-2"))
    assert failure.message == "the answer stalled for 0.1 s"
