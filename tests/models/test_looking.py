"""A look at each kind of provider: where it is asked, with which key, and what is made of the answer."""

import asyncio
from typing import Any

import msgspec
import pytest
from aiohttp import web

from app.models.http import HttpSession
from app.models.looking import Look, lookers_of
from app.models.provider_settings import ProviderSettings
from domain.provider_state import ProviderState
from tests.models.conftest import KEY
from tests.upstream.server import Upstream

PLACES: list[tuple[dict[str, Any], str, str]] = [
    ({"type": "openai", "base_url": "/v1"}, "/v1/models", "Authorization"),
    ({"type": "openai_responses", "base_url": "/v1"}, "/v1/models", "Authorization"),
    ({"type": "anthropic", "base_url": ""}, "/v1/models?limit=1", "x-api-key"),
    ({"type": "google", "base_url": ""}, "/v1beta/models?pageSize=1", "x-goog-api-key"),
    ({"type": "azure_openai", "base_url": ""}, "/openai/v1/models", "api-key"),
    (
        {"type": "azure_openai", "base_url": "", "api_version": "2024-10-21"},
        "/openai/models?api-version=2024-10-21",
        "api-key",
    ),
]


async def look_at(upstream: Upstream, http: HttpSession, within_s: float = 5.0, **settings: Any) -> Look:
    base_url = upstream.url + settings.pop("base_url", "/v1")
    provider = ProviderSettings(**{"type": "openai", "base_url": base_url, "api_key_env": "KEY", **settings})
    return await lookers_of({"p": provider}, http, within_s, {"KEY": KEY})["p"].look()


@pytest.mark.parametrize(("settings", "path", "header"), PLACES)
async def test_each_vendors_list_is_asked_for_with_the_key_of_its_calls(
    upstream: Upstream, http: HttpSession, settings: dict[str, Any], path: str, header: str
) -> None:
    look = await look_at(upstream, http, **settings)
    assert (look.state, look.detail) == (ProviderState.UP, "")
    [(asked, headers)] = upstream.lists
    assert asked == path
    assert headers[header].removeprefix("Bearer ") == KEY


@pytest.mark.parametrize(
    ("status", "state"),
    [
        (200, ProviderState.UP),
        (404, ProviderState.UP),
        (405, ProviderState.UP),
        (401, ProviderState.REFUSED),
        (403, ProviderState.REFUSED),
        (429, ProviderState.LIMITED),
        (302, ProviderState.DOWN),
        (500, ProviderState.DOWN),
        (503, ProviderState.DOWN),
        (529, ProviderState.DOWN),
    ],
)
async def test_what_a_status_shows(
    upstream: Upstream, http: HttpSession, status: int, state: ProviderState
) -> None:
    """A server without such a list answers all the same; one that fails is down."""

    async def answer() -> web.Response:
        return web.Response(status=status, text="no")

    upstream.list_answer = answer
    assert (await look_at(upstream, http)).state is state


async def test_a_provider_that_is_not_there_is_down(http: HttpSession) -> None:
    async with Upstream() as upstream:
        pass
    look = await look_at(upstream, http)
    assert look.state is ProviderState.DOWN
    assert "no connection" in look.detail


async def test_a_provider_that_says_nothing_in_time_is_down(upstream: Upstream, http: HttpSession) -> None:
    """`health.probe_timeout`"""

    async def silence() -> web.Response:
        await asyncio.Event().wait()
        raise AssertionError

    upstream.list_answer = silence
    look = await look_at(upstream, http, within_s=0.05)
    assert (look.state, look.detail) == (ProviderState.DOWN, "no answer within 0.05 s")


async def test_what_is_told_of_it_repeats_no_key(upstream: Upstream, http: HttpSession) -> None:
    async def answer() -> web.Response:
        return web.json_response({"error": {"message": f"{KEY} is wrong"}}, status=401)

    upstream.list_answer = answer
    look = await look_at(upstream, http)
    assert look.state is ProviderState.REFUSED
    assert KEY not in look.detail
    assert "***" in look.detail


async def test_a_script_is_not_read_for_this(http: HttpSession) -> None:
    """It answers as long as its process does, whatever its next call will do."""
    script = {"m": {"default": {"status": 500}}}
    provider = msgspec.convert({"type": "scripted", "models": script}, ProviderSettings)
    looker = lookers_of({"p": provider}, http, 1.0, {})["p"]
    assert (looker.at, (await looker.look()).state) == ("in_process", ProviderState.UP)
