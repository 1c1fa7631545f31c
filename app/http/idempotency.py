"""Requests with an Idempotency-Key (IDEM).

A route that takes keys asks `is_keyed` first and leaves the rest to `once`. A request without the header
costs nothing of all this: no body is kept, nothing is asked of the store.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from aiohttp import web

from app.http.decoding import read_body
from app.http.errors import BadIdempotencyKey, NotWired
from app.http.events import name_run
from app.http.in_flight import IN_FLIGHT
from app.http.services import services_of, tenant_of
from app.idempotency.answer import Answer, Form
from app.idempotency.service import Begin, Submission, Use
from domain.events import Recorded, RunEvent
from domain.idempotency import KeyedRequest, KeyInProgress

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"

Refuse = Callable[[web.Request, Sequence[Recorded[RunEvent]]], web.Response]
"""The answer to this very request from a run that came to no success; it is not kept."""

_QUOTED = re.compile(r'"((?:[ !#-\[\]-~]|\\["\\])*)"')
_BARE = re.compile(r"[!#-~][ -~]*")


def is_keyed(request: web.Request) -> bool:
    return HEADER in request.headers


async def once(
    request: web.Request,
    form: Form,
    submission: Submission,
    *,
    begin: Begin | None = None,
    refuse: Refuse | None = None,
) -> web.Response:
    """Answer a request with a key: run it once, or give the answer that it got before.

    - `form` names and makes the answer. It must be among `app.http.forms.FORMS`, for then any host can
      make it, at any time: after a crash, say.
    - `submission` is awaited where the request has no answer yet. It checks everything, and raises what is
      wrong: a refused request holds no key. What it makes of the request should depend on nothing but method,
      path and body, for these alone tell a repetition from another request.
    - `begin` opens the run: `RunService.start`, unless it is something else that honours `run_id` and
      `alongside` and raises VersionConflict when a stream alongside has moved.
    - `refuse` answers where the run came to no success, if `form` cannot do it as well.

    Raise BadIdempotencyKey, NotWired where the feature is off, KeyReused, KeyInProgress, StoreUnavailable,
    and HostStopping, which leaves the run to go on.
    """
    services = services_of(request)
    use = Use(tenant=tenant_of(request), request=await _keyed(request), form=form)
    try:
        async with request.app[IN_FLIGHT].until_stop():
            outcome = await services.idempotency.answered(use, submission, begin or services.runs.start)
    except KeyInProgress as error:
        name_run(request, error.run_id)  # whoever does not want to come again can watch it
        raise
    name_run(request, outcome.run_id)
    if refuse and not outcome.answer.is_kept:
        return refuse(request, outcome.events)
    return _response(outcome.answer, replayed=outcome.replayed)


async def _keyed(request: web.Request) -> KeyedRequest:
    settings = services_of(request).idempotency_settings
    if not settings.enabled:
        raise NotWired("Idempotency-Key is switched off here; without it the request may run twice.")
    key = key_in(request.headers.getall(HEADER), settings.max_key_length)
    body = await read_body(request)
    if _wants_a_stream(body):
        raise BadIdempotencyKey("A stream cannot be given again. Leave out Idempotency-Key, or stream.")
    return KeyedRequest.of(key, request.method, request.rel_url.raw_path, body)


def key_in(values: Sequence[str], max_length: int) -> str:
    """The key, which may be written in quotes or without. Raise BadIdempotencyKey."""
    if len(values) != 1:
        raise BadIdempotencyKey("Send one Idempotency-Key.")
    value = values[0].strip(" \t")
    if quoted := _QUOTED.fullmatch(value):
        key = re.sub(r"\\(.)", r"\1", quoted[1])
    elif _BARE.fullmatch(value):
        key = value
    else:
        raise BadIdempotencyKey("An Idempotency-Key has printable ASCII characters only, and at least one.")
    if not 0 < len(key) <= max_length:
        raise BadIdempotencyKey(f"An Idempotency-Key has 1 to {max_length} characters.")
    return key


class _Streaming(msgspec.Struct):
    stream: Any = None


_streaming = msgspec.json.Decoder(_Streaming)


def _wants_a_stream(body: bytes) -> bool:
    """What is no JSON object at all is for the route to refuse."""
    try:
        return _streaming.decode(body).stream is True
    except (msgspec.DecodeError, RecursionError):
        return False


def _response(answer: Answer, *, replayed: bool) -> web.Response:
    headers = {"Content-Type": answer.content_type, "Cache-Control": "no-store", **answer.headers}
    if replayed:
        headers[REPLAYED] = "true"
    return web.Response(body=answer.body, status=answer.status, headers=headers)
