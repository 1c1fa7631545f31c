"""Everything that the upstream can do, by the name of the model that is asked for."""

from collections.abc import Awaitable, Callable

from tests.upstream.exchange import Exchange
from tests.upstream.family import Call

Behaviour = Callable[[Exchange], Awaitable[None]]
BEHAVIOURS: dict[str, Behaviour] = {}

WEATHER = Call(id="call_weather01", name="get_weather", arguments='{"city": "Paris"}')
CLOCK = Call(id="call_clock0001", name="get_time", arguments='{"zone": "UTC"}')
PAGE = b"<!doctype html><html><body><h1>Bad gateway</h1></body></html>"


def model(name: str) -> Callable[[Behaviour], Behaviour]:
    """Register what the model of this name does."""

    def register(behaviour: Behaviour) -> Behaviour:
        BEHAVIOURS[name] = behaviour
        return behaviour

    return register


def status(name: str, number: int, code: str, message: str = "no", **headers: str) -> None:
    async def behaviour(exchange: Exchange) -> None:
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        await exchange.refuse(number, code, message, sent)

    BEHAVIOURS[name] = behaviour


# Answers


@model("text")
async def _(exchange: Exchange) -> None:
    await exchange.text("Hello ", "there ", "you.")
    await exchange.finish()


@model("tools")
async def _(exchange: Exchange) -> None:
    await exchange.text("Let me look.")
    await exchange.calls(WEATHER, CLOCK)
    await exchange.finish("tool_calls")


@model("tool-only")
async def _(exchange: Exchange) -> None:
    await exchange.calls(WEATHER)
    await exchange.finish("tool_calls")


@model("thinker")
async def _(exchange: Exchange) -> None:
    """It thinks, says something and calls a tool."""
    await exchange.think()
    await exchange.text("Let me look.")
    await exchange.calls(WEATHER, CLOCK)
    await exchange.finish("tool_calls")


@model("thinks-then-hangs")
async def _(exchange: Exchange) -> None:
    await exchange.think()
    await exchange.hang()


@model("length")
async def _(exchange: Exchange) -> None:
    await exchange.text("Once upon ", "a ")
    await exchange.finish("length")


@model("unicode")
async def _(exchange: Exchange) -> None:
    await exchange.text("Grüße ", "日本 ", "🛫")
    await exchange.finish()


@model("byte-by-byte")
async def _(exchange: Exchange) -> None:
    """The network may cut anywhere, in the middle of a character too."""
    await exchange.open(preamble=False)
    family, name = exchange.family, exchange.attempt.model
    events = [*family.preamble(name), family.text(name, "Grüße 🛫\n\nbye", "")]
    for piece in b"".join(events):
        await exchange.send(bytes([piece]))
    await exchange.finish()


# Statuses

status("401", 401, "invalid_api_key")
status("402", 402, "billing_error")
status("400", 400, "invalid_value")
status("context-overflow", 400, "context_length_exceeded")
status("404", 404, "model_not_found")
status("408", 408, "timeout")
status("413", 413, "request_too_large")
status("422", 422, "unprocessable")
status("429", 429, "rate_limit_exceeded")
status("429-after-1", 429, "rate_limit_exceeded", Retry_After="1")
status("429-after-60", 429, "rate_limit_exceeded", Retry_After="60")
status("429-after-ms", 429, "rate_limit_exceeded", retry_after_ms="1500", Retry_After="60")
status(
    "429-after-date",
    429,
    "rate_limit_exceeded",
    Date="Sun, 29 Nov 2026 22:00:00 GMT",
    Retry_After="Sun, 29 Nov 2026 22:00:30 GMT",
)
status("429-after-nonsense", 429, "rate_limit_exceeded", Retry_After="soon")
status("429-no-quota", 429, "insufficient_quota")
status("500", 500, "server_error")
status("502", 502, "server_error")
status("503", 503, "service_unavailable", Retry_After="5")
status("504", 504, "timeout_error")
status("529", 529, "overloaded_error")
status("redirect", 307, "moved", Location="/v1/elsewhere")
status("filtered-prompt", 400, "content_filter")
status("echoes-the-key", 401, "invalid_api_key", message="Incorrect API key: sk-secret-of-the-tests. Sorry.")


@model("502-page")
async def _(exchange: Exchange) -> None:
    await exchange.reply(502, PAGE, content_type="text/html; charset=utf-8")


@model("503-page")
async def _(exchange: Exchange) -> None:
    await exchange.reply(503, PAGE, content_type="text/html; charset=utf-8")


@model("500-endless")
async def _(exchange: Exchange) -> None:
    """An error page that never ends: its status is all that is waited for."""
    await exchange.reply(500, PAGE * 10_000, content_type="text/html")


# Successes that are none


@model("200-page")
async def _(exchange: Exchange) -> None:
    await exchange.reply(200, PAGE, content_type="text/html")


@model("200-nothing")
async def _(exchange: Exchange) -> None:
    await exchange.reply(200, b"", content_type="text/event-stream")


@model("200-no-json")
async def _(exchange: Exchange) -> None:
    await exchange.reply(200, b"{nope", content_type="application/json")


@model("empty")
async def _(exchange: Exchange) -> None:
    await exchange.finish()


@model("content-filter")
async def _(exchange: Exchange) -> None:
    await exchange.finish("content_filter")


@model("content-filter-late")
async def _(exchange: Exchange) -> None:
    await exchange.text("Well, ")
    await exchange.finish("content_filter")


@model("reports-500")
async def _(exchange: Exchange) -> None:
    await exchange.report(500, "server_error")


@model("reports-overload")
async def _(exchange: Exchange) -> None:
    await exchange.report(529, "overloaded_error")


@model("reports-rate-limit")
async def _(exchange: Exchange) -> None:
    await exchange.report(429, "rate_limit_exceeded")


@model("reports-unknown")
async def _(exchange: Exchange) -> None:
    await exchange.report(500, "gremlins")


@model("reports-late")
async def _(exchange: Exchange) -> None:
    await exchange.text("Hello ")
    await exchange.report(500, "server_error")


@model("200-json-error")
async def _(exchange: Exchange) -> None:
    """A plain body with an error, to a stream too."""
    await exchange.reply(200, exchange.family.error_body(429, "rate_limit_exceeded", "slow down"))


@model("200-json-whole")
async def _(exchange: Exchange) -> None:
    """A server that does not stream, whatever it is asked."""
    exchange.attempt.streamed = False
    await exchange.text("Hello there.")
    await exchange.finish()


# The socket


@model("reset")
async def _(exchange: Exchange) -> None:
    await exchange.reset()


@model("reset-after-preamble")
async def _(exchange: Exchange) -> None:
    await exchange.open()
    await exchange.reset()


@model("cut-0")
async def _(exchange: Exchange) -> None:
    await exchange.cut()


@model("cut-2")
async def _(exchange: Exchange) -> None:
    await exchange.text("Hello ", "there ")
    await exchange.cut()


@model("cut-in-tool-call")
async def _(exchange: Exchange) -> None:
    await exchange.open()
    await exchange.send(*exchange.family.calls(exchange.attempt.model, [WEATHER])[:2])
    await exchange.cut()


@model("ends-without-finish")
async def _(exchange: Exchange) -> None:
    """A clean end of the response, and no finish reason."""
    await exchange.text("Hello ", "there ")


@model("terminator-without-finish")
async def _(exchange: Exchange) -> None:
    await exchange.text("Hello ", "there ")
    await exchange.send(*exchange.family.terminator())


@model("no-terminator")
async def _(exchange: Exchange) -> None:
    await exchange.text("Hello ", "there.")
    await exchange.finish(terminate=False)


@model("fin-after-finish")
async def _(exchange: Exchange) -> None:
    await exchange.text("Hello ", "there.")
    await exchange.finish(terminate=False)
    await exchange.cut()


@model("reset-after-finish")
async def _(exchange: Exchange) -> None:
    await exchange.text("Hello ", "there.")
    await exchange.finish(terminate=False)
    await exchange.reset()


@model("hangs-after-finish")
async def _(exchange: Exchange) -> None:
    await exchange.text("Hello ", "there.")
    await exchange.send(exchange.family.finish(exchange.attempt.model, exchange.answer)[0])
    await exchange.hang()


@model("reports-after-finish")
async def _(exchange: Exchange) -> None:
    await exchange.text("Hello ", "there.")
    await exchange.send(exchange.family.finish(exchange.attempt.model, exchange.answer)[0])
    await exchange.report(500, "server_error")


@model("rest-and-fin-behind-the-gate")
async def _(exchange: Exchange) -> None:
    """The finish reason and the end of the connection are there at once."""
    await exchange.text("Hello ")
    await exchange.attempt.gate.wait()
    await exchange.text("there.")
    await exchange.finish(terminate=False)
    await exchange.cut_off()


@model("terminator-behind-the-gate")
async def _(exchange: Exchange) -> None:
    await exchange.text("Hello ", "there.")
    await exchange.finish(terminate=False)
    await exchange.attempt.gate.wait()
    await exchange.send(*exchange.family.terminator())


@model("not-http")
async def _(exchange: Exchange) -> None:
    assert exchange.request.transport is not None
    exchange.request.transport.write(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
    await exchange.cut_off()


# Time


@model("silent")
async def _(exchange: Exchange) -> None:
    """No headers."""
    await exchange.hang()


@model("silent-after-preamble")
async def _(exchange: Exchange) -> None:
    await exchange.open()
    await exchange.hang()


@model("comments-only")
async def _(exchange: Exchange) -> None:
    """A proxy that keeps a dead answer alive; unstreamed, with white space."""
    await exchange.open()
    sign_of_life = b": still here\n\n"
    if not exchange.streamed:
        await exchange.half_a_body(0)
        sign_of_life = b" "
    while True:
        await exchange.send(sign_of_life)
        await exchange.pause(0.02)


@model("stall-2")
async def _(exchange: Exchange) -> None:
    if exchange.streamed:
        await exchange.text("Hello ", "there ")
    await exchange.hang()


@model("stall-in-body")
async def _(exchange: Exchange) -> None:
    await exchange.text("Hello ", "there ")
    await exchange.half_a_body()
    await exchange.hang()


@model("comments-then-text")
async def _(exchange: Exchange) -> None:
    await exchange.open(preamble=False)
    await exchange.send(b": connected\n\n", b"retry: 3000\n\n", b": still here\n\n")
    await exchange.text("Hello ", "there.")
    await exchange.finish()


# Events that are not as they should be


@model("broken-event")
async def _(exchange: Exchange) -> None:
    await exchange.text("Hello ")
    await exchange.send(b'data: {"choices": [{"index"\n\n', b"data: \xff\xfe\n\n", b"data: 7\n\n")
    await exchange.text("there.")
    await exchange.finish()


@model("crlf")
async def _(exchange: Exchange) -> None:
    await exchange.open(preamble=False)
    name, family = exchange.attempt.model, exchange.family
    texts = [family.text(name, "Hello ", ""), family.text(name, "there.", "Hello ")]
    for event in [*family.preamble(name), *texts]:
        await exchange.send(event.replace(b"\n", b"\r\n"))
    await exchange.finish()


@model("endless-line")
async def _(exchange: Exchange) -> None:
    await exchange.text("Hello ")
    while True:
        await exchange.send(b"x" * 262_144)
