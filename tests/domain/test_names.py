"""Names and the streams that are found by them."""

from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.agent import AgentDefinition, Link, Name
from domain.ids import RunId, run_stream, session_stream


def test_a_runs_stream_carries_its_id() -> None:
    assert run_stream(RunId(UUID(int=5))) == UUID(int=5)


def test_a_sessions_stream_is_the_same_for_ever() -> None:
    """Sessions are found by computing this: another value would lose every conversation so far."""
    assert session_stream("default", "s-1") == UUID("9d238872-c0ca-5727-8558-38a8625c71c7")


@given(one=st.tuples(st.text(), st.text()), other=st.tuples(st.text(), st.text()))
def test_two_sessions_never_share_a_stream(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert (session_stream(*one) == session_stream(*other)) == (one == other)


def test_the_split_between_tenant_and_session_matters() -> None:
    assert session_stream("a", "bc") != session_stream("ab", "c")
    assert session_stream("1", "1:x") != session_stream("11", ":x")


@pytest.mark.parametrize("name", ["a", "9", "support", "order-7.v2_b", "x" * 128])
def test_a_good_name_is_taken(name: str) -> None:
    assert msgspec.convert(name, Name) == name


@pytest.mark.parametrize("name", ["", "-a", ".a", "_a", "a b", "a/b", "\u00e9", "a\n", "a\nb", "x" * 129])
def test_a_bad_name_is_refused(name: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(name, Name)


def test_the_links_of_a_binding_are_the_primary_and_then_its_fallbacks() -> None:
    backup = Link(provider="backup", model="big")
    agent = AgentDefinition(name="support", provider="primary", model="small", fallbacks=(backup,))
    assert agent.links == (Link(provider="primary", model="small"), backup)
    assert str(agent.links[1]) == "backup/big"
