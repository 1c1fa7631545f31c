"""Which of the types that a route can answer in the client asked for."""

from app.http.errors import NotAcceptable

JSON = "application/json"
EVENT_STREAM = "text/event-stream"


def choose(accept: str | None, offered: tuple[str, ...]) -> str:
    """The offered type that Accept likes best; of equals, the one offered first. Raise NotAcceptable."""
    ranges = _parse(accept or "*/*")
    quality = {media: _quality(media, ranges) for media in offered}
    best = max(offered, key=lambda media: quality[media])
    if quality[best] <= 0:
        raise NotAcceptable(f"This route answers in {' or '.join(offered)}.")
    return best


def _parse(accept: str) -> dict[str, float]:
    ranges: dict[str, float] = {}
    for item in accept.lower().split(","):
        media, *parameters = (part.strip() for part in item.split(";"))
        if media:
            ranges[media] = _q(parameters)
    return ranges or {"*/*": 1.0}


def _q(parameters: list[str]) -> float:
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return min(max(float(value), 0.0), 1.0)
            except ValueError:
                return 1.0
    return 1.0


def _quality(media: str, ranges: dict[str, float]) -> float:
    """The most specific range that covers the type decides."""
    for candidate in (media, f"{media.partition('/')[0]}/*", "*/*"):
        if candidate in ranges:
            return ranges[candidate]
    return 0.0
