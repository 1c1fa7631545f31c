"""Keys of idempotent requests, which this build does not know here."""

from aiohttp import web

from app.http.errors import NotWired


def refuse_key(request: web.Request) -> None:
    """Raise NotWired for a header that would promise what is not kept."""
    if "Idempotency-Key" in request.headers:
        raise NotWired("Idempotency-Key is not supported here; without it the request may run twice.")
