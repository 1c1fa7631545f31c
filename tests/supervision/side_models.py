"""Models of the upstream that summarise and judge."""

from tests.upstream.exchange import Exchange
from tests.upstream.registry import model

SUMMARY = "They talked about fish."


@model("summarises")
async def _(exchange: Exchange) -> None:
    await exchange.text(SUMMARY)
    await exchange.finish()


@model("finds-it-good")
async def _(exchange: Exchange) -> None:
    await exchange.text('{"reason": "It greets.", ', '"met": true}')
    await exchange.finish()
