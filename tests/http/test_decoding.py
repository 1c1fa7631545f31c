"""What comes in is read strictly, and everything wrong is named."""

from typing import Any
from uuid import uuid4

import msgspec
import pytest
from aiohttp.test_utils import make_mocked_request
from aiohttp.web import Request

from app.http.bodies import EventsQuery, RunsQuery, StartRunBody, StatsQuery
from app.http.decoding import decode_json, query_of, run_id_of, sequence_of
from app.http.errors import BadBody, BadQuery
from domain.errors import NotFound
from domain.run import RunStatus


def refusal(raw: bytes) -> BadBody:
    with pytest.raises(BadBody) as caught:
        decode_json(raw, StartRunBody)
    return caught.value


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        (b'{"message": 7}', "$.message"),
        (b'{"message": null}', "$.message"),
        (b'{"mesage": "hi"}', "$.mesage"),
        (b'{"message": "hi", "session_id": ""}', "$.session_id"),
        (b'{"message": "hi", "session_id": "%b"}' % (b"x" * 201), "$.session_id"),
        (b'{"message": "hi", "parameters": []}', "$.parameters"),
        (b'{"messages": [{"role": "user"}]}', "$.messages[0].content"),
        (b'{"messages": [{"role": "robot", "content": "hi"}]}', "$.messages[0].role"),
        (b'{"messages": [{"role": "user", "content": "hi", "name": "x"}]}', "$.messages[0].name"),
        (b'{"messages": {}}', "$.messages"),
        (b"[]", "$"),
        (b'"hi"', "$"),
    ],
)
def test_a_body_of_the_wrong_shape_names_the_field(raw: bytes, field: str) -> None:
    """HTTP-1"""
    told = refusal(raw)
    assert [error.field for error in told.errors] == [field]
    assert field in str(told)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "truncated"),
        (b'{"message": "hi"', "truncated"),
        (b'{"message": hi}', r"byte 12"),
        (b'{"message": "hi"} x', r"byte 19"),
        (b"\xef\xbb\xbf{}", r"byte 0"),
        (b'{"message": "\xff\xfe"}', "UTF-8"),
        (b'{"message": "\\ud800"}', "not JSON"),
        (b'{"message": "\\udc00 "}', "not JSON"),
        (b'{"message": "a\x01b"}', "not JSON"),
        (b'{"parameters": {"x": NaN}}', r"byte 21"),
    ],
)
def test_what_is_not_json_says_where_it_stops_being_json(raw: bytes, says: str) -> None:
    """HTTP-1"""
    with pytest.raises(BadBody, match=says):
        decode_json(raw, StartRunBody)


@pytest.mark.parametrize("depth", [65, 900, 100_000])
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}")])
def test_endless_nesting_is_refused_and_does_not_crash(depth: int, opened: str, closed: str) -> None:
    """HTTP-1"""
    value = opened * depth + "1" + closed * depth
    told = refusal(f'{{"message": "hi", "parameters": {{"x": {value}}}}}'.encode())
    assert "nested" in str(told)


def test_reasonable_nesting_is_accepted() -> None:
    value = "[" * 60 + "]" * 60
    body = decode_json(f'{{"message": "hi", "parameters": {{"x": {value}}}}}'.encode(), StartRunBody)
    assert msgspec.json.decode(msgspec.json.encode(body.parameters)) == body.parameters


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1" + "0" * 5000])
def test_a_number_that_nothing_can_hold_is_refused(number: str) -> None:
    """HTTP-1"""
    assert "out of range" in str(refusal(f'{{"message": "hi", "parameters": {{"x": {number}}}}}'.encode()))


def test_a_long_number_survives_being_written_again() -> None:
    body = decode_json(b'{"message": "hi", "parameters": {"x": 1%b}}' % (b"0" * 40), StartRunBody)
    assert msgspec.json.decode(msgspec.json.encode(body.parameters)) == {"x": 10**40}


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b'{"message": "a", "message": "b"}', "message"),
        (b'{"message": "a", "parameters": {"x": 1, "x": 2}}', "x"),
    ],
)
def test_a_name_given_twice_is_refused_since_readers_disagree_about_it(raw: bytes, name: str) -> None:
    """HTTP-1"""
    assert [error.field for error in refusal(raw).errors] == [name]


@pytest.mark.timeout(10)
def test_a_name_given_twice_is_found_among_very_many() -> None:
    """One body within the limit kept the whole host busy for minutes."""
    names = b",".join(b'"n%d":1' % number for number in range(70_000))
    raw = b'{"message": "a", "parameters": {%b, "n69999": 2}}' % names
    assert [error.field for error in refusal(raw).errors] == ["n69999"]


def asked(query: str) -> Request:
    return make_mocked_request("GET", f"/?{query}")


def test_a_query_is_typed_by_its_struct() -> None:
    wanted = query_of(asked("status=Failed&agent=a&take=7"), RunsQuery)
    assert wanted == RunsQuery(status=RunStatus.FAILED, agent="a", take=7)


@pytest.mark.parametrize(
    ("type_", "query", "field"),
    [
        (RunsQuery, "stauts=Failed", "stauts"),
        (RunsQuery, "status=Broken", "status"),
        (RunsQuery, "status=null", "status"),
        (RunsQuery, "take=many", "take"),
        (RunsQuery, "take=1&take=2", "take"),
        (RunsQuery, "since=2026-01-01T00:00:00", "since"),
        (StatsQuery, "since=yesterday", "since"),
        (EventsQuery, "take=1.5", "take"),
    ],
)
def test_a_wrong_query_names_the_parameter(type_: Any, query: str, field: str) -> None:
    """HTTP-1"""
    with pytest.raises(BadQuery) as caught:
        query_of(asked(query), type_)
    assert [error.field for error in caught.value.errors] == [field]


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5", "+1", " 1", "٣", "99999999999", str(2**31), "1e3"])
def test_a_place_in_a_stream_is_a_number_of_an_event(text: str) -> None:
    """HTTP-3"""
    with pytest.raises(BadQuery, match="Last-Event-ID"):
        sequence_of("Last-Event-ID", text)


def test_zero_is_the_place_before_the_first_event() -> None:
    assert (sequence_of("after", "0"), sequence_of("after", "17")) == (0, 17)


@pytest.mark.parametrize("text", ["", "7", "not-a-run", "00000000-0000-0000-0000-00000000000g"])
def test_what_is_no_id_names_no_run(text: str) -> None:
    """HTTP-2"""
    with pytest.raises(NotFound):
        run_id_of(make_mocked_request("GET", "/", match_info={"id": text}))


def test_an_id_is_an_id() -> None:
    run_id = uuid4()
    assert run_id_of(make_mocked_request("GET", "/", match_info={"id": str(run_id)})) == run_id
