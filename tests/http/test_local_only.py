"""Who is served when there are no credentials."""

import pytest

from app.http.locality import is_local


@pytest.mark.parametrize(
    ("peer", "host"),
    [
        ("127.0.0.1", "127.0.0.1:8080"),
        ("127.0.0.1", "localhost:8080"),
        ("127.8.9.1", "localhost"),
        ("::1", "[::1]:8080"),
        ("::ffff:127.0.0.1", "localhost"),
        ("127.0.0.1", "tracon.localhost:8080"),
        ("", "localhost"),
        (None, ""),
    ],
)
def test_clients_on_this_machine_are_served(peer: str | None, host: str) -> None:
    """HTTP-4"""
    assert is_local(peer, {"Host": host})


@pytest.mark.parametrize(
    "peer", ["10.0.0.7", "192.168.1.2", "::ffff:10.0.0.7", "fe80::1%eth0", "8.8.8.8", "junk"]
)
def test_clients_elsewhere_are_not(peer: str) -> None:
    """HTTP-4"""
    assert not is_local(peer, {"Host": "localhost"})


@pytest.mark.parametrize(
    "header", ["Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-IP"]
)
def test_a_proxy_on_this_machine_does_not_vouch_for_its_clients(header: str) -> None:
    """HTTP-4"""
    assert not is_local("127.0.0.1", {"Host": "localhost", header: "10.0.0.7"})


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "10.0.0.7:8080", "localhost.evil.example"]
)
def test_a_page_under_another_name_cannot_reach_us_through_a_browser_here(host: str) -> None:
    """HTTP-4"""
    assert not is_local("127.0.0.1", {"Host": host})


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "http://localhost.evil.example", "http://10.0.0.7:8080", "null", "", "http://["],
)
def test_a_page_from_elsewhere_cannot_reach_us_under_our_own_name_either(origin: str) -> None:
    """HTTP-4: a browser needs no permission of ours to send a POST without a body, a cancel for example."""
    assert not is_local("127.0.0.1", {"Host": "localhost:8080", "Origin": origin})


@pytest.mark.parametrize("origin", ["http://localhost:8080", "http://127.0.0.1:3000", "http://[::1]:8080"])
def test_a_page_of_this_machine_can(origin: str) -> None:
    """HTTP-4: the console is one."""
    assert is_local("127.0.0.1", {"Host": "localhost:8080", "Origin": origin})
