"""Events come out of bytes as the standard says, wherever the network cut them."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.models.sse import SseEvent, SseOverflow, SseParser


def parse(*pieces: bytes) -> list[SseEvent]:
    parser = SseParser()
    return [*(event for piece in pieces for event in parser.feed(piece)), *parser.close()]


def data(*payloads: bytes) -> list[SseEvent]:
    return [SseEvent(b"", payload) for payload in payloads]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\ndata: b\n\n", data(b"a", b"b")),
        (b"data:a\n\n", data(b"a")),
        (b"data:  a\n\n", data(b" a")),
        (b"data: a\ndata: b\n\n", data(b"a\nb")),
        (b"data\n\n", data(b"")),
        (b"event: error\ndata: a\n\ndata: b\n\n", [SseEvent(b"error", b"a"), SseEvent(b"", b"b")]),
        (b"event: ping\n\ndata: a\n\n", data(b"a")),
        (b": comment\n\n: another\ndata: a\n\n", data(b"a")),
        (b"id: 7\nretry: 3000\nunknown: x\ndata: a\n\n", data(b"a")),
        (b"data: a: b\n\n", data(b"a: b")),
        (b"\n\n\ndata: a\n\n\n\n", data(b"a")),
        (b"\xef\xbb\xbfdata: a\n\n", data(b"a")),
        ("data: Grüße 🛫\n\n".encode(), data("Grüße 🛫".encode())),
        (b"data: a\n\ndata: the end is missing", data(b"a", b"the end is missing")),
        (b"data: a\n\ndata: b\n", data(b"a", b"b")),
        (b"", []),
    ],
)
@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"])
def test_every_line_ending_and_every_cut_gives_the_same_events(
    stream: bytes, events: list[SseEvent], ending: bytes
) -> None:
    stream = stream.replace(b"\n", ending)
    assert parse(stream) == events
    assert parse(*(bytes([byte]) for byte in stream)) == events
    for cut in range(len(stream)):
        assert parse(stream[:cut], stream[cut:]) == events


_line = st.sampled_from([b"data: a", b"data:", b": c", b"event: e", b"", b"id: 1", b"data: \xf0\x9f\x9b\xab"])


@given(st.lists(st.tuples(_line, st.sampled_from([b"\n", b"\r\n", b"\r"]))), st.data())
def test_cuts_never_matter(lines: list[tuple[bytes, bytes]], draw: st.DataObject) -> None:
    stream = b"".join(line + ending for line, ending in lines)
    cuts = sorted(draw.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    edges = [0, *cuts, len(stream)]
    pieces = [stream[start:end] for start, end in pairwise(edges)]
    assert parse(*pieces) == parse(stream)


def test_an_event_is_there_as_soon_as_its_last_byte_is() -> None:
    parser = SseParser()
    assert parser.feed(b"data: a\r\n\r") == data(b"a")
    assert parser.feed(b"\ndata: b\n") == []
    assert parser.feed(b"\n") == data(b"b")


@pytest.mark.parametrize("piece", [b"x" * 40, b"data: " + b"x" * 34 + b"\n"])
def test_what_is_pending_is_bounded(piece: bytes) -> None:
    """One line without an end, or an event of endless lines."""
    parser = SseParser(max_bytes=100)
    parser.feed(piece)
    parser.feed(piece)
    with pytest.raises(SseOverflow):
        parser.feed(piece)


def test_what_was_read_does_not_count_against_the_bound() -> None:
    parser = SseParser(max_bytes=100)
    for _ in range(100):
        assert parser.feed(b"data: " + b"x" * 60 + b"\n\n: " + b"y" * 20 + b"\n") == data(b"x" * 60)
