"""Whether a client is on the service's own machine."""

from collections.abc import Mapping
from functools import lru_cache
from ipaddress import ip_address
from urllib.parse import urlsplit

_FORWARDED = ("Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP")


def is_local(peer: str | None, headers: Mapping[str, str]) -> bool:
    """Whether the client is on this machine: by its address, by what it calls us, and through no proxy.

    A proxy on this machine speaks for others, and a web page elsewhere can make a browser here call this
    address, under its own name or under that of the page: all of these come from a loopback address.
    """
    if any(name in headers for name in _FORWARDED) or not _is_ours(headers.get("Origin")):
        return False
    return is_loopback(peer or "") and is_loopback(_host_name(headers.get("Host", "")))


def _is_ours(origin: str | None) -> bool:
    """Whether it is a page of this machine that asks, if it is one. A browser says so where it matters."""
    if origin is None:
        return True
    try:
        name = urlsplit(origin).hostname
    except ValueError:
        return False
    return bool(name) and is_loopback(name or "")


def _host_name(host: str) -> str:
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


@lru_cache(maxsize=1024)
def is_loopback(name: str) -> bool:
    """An empty name is that of a Unix socket's client, or of one that does not say whom it calls."""
    if not name or name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        address = ip_address(name.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return (mapped or address).is_loopback
