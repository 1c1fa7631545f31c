"""Answers as they should be, and events between them as they should not."""

from tests.upstream.exchange import Exchange
from tests.upstream.family import Call
from tests.upstream.registry import model

WEATHER = Call(id="call_weather01", name="get_weather", arguments='{"city": "Paris"}')
CLOCK = Call(id="call_clock0001", name="get_time", arguments='{"zone": "UTC"}')


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
