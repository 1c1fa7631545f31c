"""Inbound triggers: requests of other systems, which have no key but sign what they send (JOB-2)."""

from asyncio import shield

from aiohttp import web

from app.http.bodies import NoQuery
from app.http.decoding import query_of, read_body
from app.http.errors import Refused
from app.http.idempotency import REPLAYED
from app.http.queued import queued_before
from app.http.services import services_of
from app.jobs.triggers import Delivery

_LONGEST_ID = 256
_LONGEST_TIMESTAMP = 12


class NotSigned(Refused):
    """Whoever sent it did not sign it with the trigger's secret, or not lately; or there is no such trigger.

    Which of these it is stays untold.
    """

    status = 401
    code = "unauthenticated"

    def __init__(self) -> None:
        super().__init__("The request is not signed as it must be.")
        self.headers = {"WWW-Authenticate": 'Signature realm="tracon"'}


async def deliver(request: web.Request) -> web.Response:
    """It only writes a job, so a host that drains takes it too (DRAIN-1)."""
    delivery = _delivery(request, await read_body(request))
    query_of(request, NoQuery)
    accepted = await shield(services_of(request).triggers.accept(request.match_info["name"], delivery))
    if accepted is None:
        raise NotSigned
    response = await queued_before(request, accepted.run_id)
    if accepted.repeated:
        response.headers[REPLAYED] = "true"
    return response


def _delivery(request: web.Request, body: bytes) -> Delivery:
    """Raise NotSigned where a header is missing, or cannot be what was signed."""
    id_ = request.headers.get("webhook-id", "")
    timestamp = request.headers.get("webhook-timestamp", "")
    signatures = request.headers.get("webhook-signature", "")
    if not (0 < len(id_) <= _LONGEST_ID and id_.isascii() and id_.isprintable()):
        raise NotSigned
    if not (timestamp.isascii() and timestamp.isdigit() and len(timestamp) <= _LONGEST_TIMESTAMP):
        raise NotSigned
    if not signatures.isascii():
        raise NotSigned
    return Delivery(id=id_, timestamp=int(timestamp), signatures=signatures, body=body)
