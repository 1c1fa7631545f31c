"""Which type an answer comes in."""

import pytest

from app.http.errors import NotAcceptable
from app.http.negotiation import EVENT_STREAM, JSON, choose

BOTH = (EVENT_STREAM, JSON)


@pytest.mark.parametrize(
    ("accept", "chosen"),
    [
        (None, EVENT_STREAM),
        ("", EVENT_STREAM),
        ("*/*", EVENT_STREAM),
        ("application/json", JSON),
        ("APPLICATION/JSON", JSON),
        ("text/event-stream", EVENT_STREAM),
        ("application/*", JSON),
        ("text/*", EVENT_STREAM),
        ("application/json, text/event-stream", EVENT_STREAM),
        ("application/json, text/event-stream;q=0.5", JSON),
        ("text/event-stream;q=0, */*", JSON),
        ("text/html, */*;q=0.1", EVENT_STREAM),
        ("application/json;charset=utf-8", JSON),
        ("application/json;q=nonsense", JSON),
    ],
)
def test_the_most_wanted_type_is_chosen_and_of_equals_the_one_offered_first(
    accept: str | None, chosen: str
) -> None:
    """HTTP-3"""
    assert choose(accept, BOTH) == chosen


@pytest.mark.parametrize("accept", ["text/html", "application/json;q=0", "*/*;q=0"])
def test_a_client_that_takes_none_of_the_types_is_told_which_there_are(accept: str) -> None:
    """HTTP-1"""
    with pytest.raises(NotAcceptable, match="text/event-stream or application/json"):
        choose(accept, BOTH)
