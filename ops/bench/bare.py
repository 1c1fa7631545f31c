"""The least that keeps anything: a handler that stores the request, asks the upstream, and stores the answer.

    python -m ops.bench.bare UPSTREAM

One INSERT and one commit before the call, one after it, on a Postgres of its own; no tenants, no limits, no
retries, no stream to follow. What a durable answer costs on this machine before anything is done with it.
Prints its URL and serves Chat Completions until its input ends.
"""

import asyncio
import sys
import tempfile
from pathlib import Path
from uuid import uuid4

import aiohttp
import asyncpg
import uvloop
from aiohttp import web

from app.db import embedded

_TABLE = "CREATE TABLE kept (id uuid, version int, state bytea, PRIMARY KEY (id, version))"
_KEEP = "INSERT INTO kept VALUES ($1, $2, $3)"
_CONNECTIONS = 8


def _application(pool: asyncpg.Pool, session: aiohttp.ClientSession, upstream: str) -> web.Application:
    async def answer(request: web.Request) -> web.Response:
        asked, id_ = await request.read(), uuid4()
        await pool.execute(_KEEP, id_, 1, asked)
        headers = {"Content-Type": "application/json"}
        async with session.post(f"{upstream}/v1/chat/completions", data=asked, headers=headers) as response:
            answered = await response.read()
        await pool.execute(_KEEP, id_, 2, answered)
        return web.Response(body=answered, content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    return app


async def _serve(upstream: str, folder: Path) -> None:
    postgres = await embedded.start(folder / "data")
    try:
        async with (
            asyncpg.create_pool(postgres.dsn(), min_size=_CONNECTIONS, max_size=_CONNECTIONS) as pool,
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
        ):
            await pool.execute(_TABLE)
            runner = web.AppRunner(_application(pool, session, upstream), access_log=None)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            print(f"http://127.0.0.1:{runner.addresses[0][1]}", flush=True)
            await asyncio.to_thread(sys.stdin.read)
            await runner.cleanup()
    finally:
        await postgres.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        uvloop.run(_serve(sys.argv[1], Path(name)))
