"""Connections that break, and servers that fall silent."""

from tests.upstream.answers import WEATHER
from tests.upstream.exchange import Exchange
from tests.upstream.registry import model


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


@model("comments-after-finish")
async def _(exchange: Exchange) -> None:
    """A proxy that does not know that the answer is over."""
    await exchange.text("Hello ", "there.")
    await exchange.send(exchange.family.finish(exchange.attempt.model, exchange.answer)[0])
    while True:
        await exchange.send(b": still here\n\n")
        await exchange.pause(0.02)


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


@model("half-an-event")
async def _(exchange: Exchange) -> None:
    """An event whose end never comes."""
    await exchange.text("Hello ", "there ")
    await exchange.send(exchange.family.text(exchange.attempt.model, "you.", "Hello there ")[:-9])
    await exchange.hang()


@model("half-of-the-first-event")
async def _(exchange: Exchange) -> None:
    await exchange.open(preamble=False)
    await exchange.send(exchange.family.text(exchange.attempt.model, "Hello ", "")[:-9])
    await exchange.hang()


@model("comments-then-text")
async def _(exchange: Exchange) -> None:
    await exchange.open(preamble=False)
    await exchange.send(b": connected\n\n", b"retry: 3000\n\n", b": still here\n\n")
    await exchange.text("Hello ", "there.")
    await exchange.finish()
