"""What a request learns about itself on its way through."""

from aiohttp import web

from app.http.principal import Principal

REQUEST_ID = web.RequestKey("request_id", str)
RUN_ID = web.RequestKey("run_id", str)
STREAMING = web.RequestKey("streaming", bool)
"""The answer is an event stream: how long it takes says nothing."""
PRINCIPAL = web.RequestKey("principal", Principal)
"""On whose behalf it is made. Requests to open routes have none."""
