"""An upstream that costs as little as it can: one fixed answer, at once or word by word.

    python -m ops.bench.upstream

Prints its URL and serves Chat Completions until its input ends. Model `instant` answers at once; model `slow`
sends one piece of text and then nothing until it is left.
"""

import asyncio
import sys

import msgspec
import uvloop
from aiohttp import web

_REPLY = (
    b'{"id":"c","object":"chat.completion","created":1,"model":"instant","choices":[{"index":0,"message":'
    b'{"role":"assistant","content":"Hello there."},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}'
)
_CHUNK = b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[%b]}\n\n'
_SPEAKS = _CHUNK % b'{"index":0,"delta":{"role":"assistant","content":"Hello there."},"finish_reason":null}'
_STOPS = _CHUNK % b'{"index":0,"delta":{},"finish_reason":"stop"}'


class _Request(msgspec.Struct):
    model: str
    stream: bool = False


async def _answer(request: web.Request) -> web.StreamResponse:
    asked = msgspec.json.decode(await request.read(), type=_Request)
    if not asked.stream:
        return web.Response(body=_REPLY, content_type="application/json")
    response = web.StreamResponse()
    response.content_type = "text/event-stream"
    await response.prepare(request)
    await response.write(_SPEAKS)
    if asked.model == "slow":
        await asyncio.Event().wait()
    await response.write(_STOPS + b"data: [DONE]\n\n")
    return response


async def _serve() -> None:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", _answer)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=4096).start()
    print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    uvloop.run(_serve())
