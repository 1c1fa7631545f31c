"""An answer that is taken in, read by read."""

from app.models.openai_chat import ChatStream
from app.models.stream_reading import StreamReading
from domain.failure import FailureKind

PIECE = b'data: {"choices":[{"index":0,"delta":{"content":"more "}}]}\n\n'
LAST = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'


def test_a_stream_without_end_is_given_up() -> None:
    """It would fill the memory of the host; what came before the limit stays delivered."""
    reading = StreamReading(ChatStream(), "p", max_bytes=3 * len(PIECE))
    told = ""
    while not reading.over:
        told += reading.take(PIECE)
    assert told == "more " * 3
    assert reading.failure is not None
    assert reading.failure.kind is FailureKind.UNREADABLE


def test_what_follows_the_finish_reason_is_no_failure_however_much() -> None:
    reading = StreamReading(ChatStream(), "p", max_bytes=len(PIECE + LAST))
    assert reading.take(PIECE + LAST) == "more "
    assert reading.take(PIECE) == ""
    assert (reading.over, reading.failure) == (True, None)
