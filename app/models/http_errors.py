"""Errors of the HTTP client as what an adapter saw."""

import os

import aiohttp

from domain.failure import CallFailure, FailureKind


def translated(error: aiohttp.ClientError | OSError) -> CallFailure:
    """What the error means for a call. Its own text stays behind: it can hold the request."""
    if isinstance(
        error, aiohttp.ConnectionTimeoutError | aiohttp.ClientConnectorError | aiohttp.ClientSSLError
    ):
        return CallFailure(kind=FailureKind.CONNECT, message=_no_connection(error))
    match error:
        case aiohttp.ClientResponseError():
            kind, message = FailureKind.UNREADABLE, "the answer is not HTTP"
        case aiohttp.ClientPayloadError():
            kind, message = FailureKind.RESET, "the answer ended early"
        case aiohttp.ServerDisconnectedError():
            kind, message = FailureKind.RESET, "the connection was closed before the answer"
        case aiohttp.InvalidURL():
            kind, message = FailureKind.INTERNAL, "the provider's address is not a URL"
        case _:
            kind, message = FailureKind.RESET, "the connection broke"
    return CallFailure(kind=kind, message=message)


def _no_connection(error: aiohttp.ClientError) -> str:
    match error:
        case aiohttp.ConnectionTimeoutError():
            return "no connection in time"
        case aiohttp.ClientConnectorDNSError():
            return f"the host {error.host} is not known"
        case aiohttp.ClientSSLError() | aiohttp.ClientConnectorCertificateError():
            return f"no TLS connection to {error.host}:{error.port}"
        case aiohttp.ClientConnectorError():
            return f"no connection to {error.host}:{error.port}: {_reason(error.os_error)}"
        case _:
            return "no connection"


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else "it failed"
