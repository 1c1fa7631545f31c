"""Models of the upstream that tests of the chain need beside its faults: how a begun answer is taken up."""

from tests.upstream.exchange import Exchange
from tests.upstream.family import Call
from tests.upstream.registry import model

CUT_CALL = Call(id="call_order00001", name="order_pizzas", arguments="{}")


@model("says-the-rest")
async def _(exchange: Exchange) -> None:
    await exchange.text("you.")
    await exchange.finish()


@model("begins-again")
async def _(exchange: Exchange) -> None:
    await exchange.text("Hel", "lo there", " you.")
    await exchange.finish()


@model("says-a-word-and-is-cut")
async def _(exchange: Exchange) -> None:
    await exchange.text("my ")
    await exchange.cut()


@model("says-nothing-much-and-is-cut")
async def _(exchange: Exchange) -> None:
    await exchange.text("\n ")
    await exchange.cut()


@model("is-cut-off-in-a-call")
async def _(exchange: Exchange) -> None:
    """It reaches its output limit before the first argument of its call; told so, it answers."""
    if "output limit" in str(exchange.attempt.body):
        await exchange.text("I see.")
        await exchange.finish()
    else:
        await exchange.calls(CUT_CALL)
        await exchange.finish("length")


@model("takes-no-prefill")
async def _(exchange: Exchange) -> None:
    if exchange.attempt.body["messages"][-1]["role"] == "assistant":
        await exchange.refuse(400, "invalid_value", "prefill is not supported for this model")
    else:
        await exchange.text("you.")
        await exchange.finish()


@model("too-long-in-words")
async def _(exchange: Exchange) -> None:
    await exchange.refuse(400, "invalid_value", "prompt is too long: 9 tokens > 8 maximum")
