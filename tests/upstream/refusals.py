"""Answers that are none: statuses, pages, errors inside of a success."""

from tests.upstream.exchange import Exchange
from tests.upstream.registry import BEHAVIOURS, model

PAGE = b"<!doctype html><html><body><h1>Bad gateway</h1></body></html>"


def status(name: str, number: int, code: str, message: str = "no", **headers: str) -> None:
    async def behaviour(exchange: Exchange) -> None:
        sent = {key.replace("_", "-"): value for key, value in headers.items()}
        await exchange.refuse(number, code, message, sent)

    BEHAVIOURS[name] = behaviour


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
