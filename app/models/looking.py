"""A look at a provider that asks it for no answer of a model: cheap, and no call."""

import asyncio
import os
from collections.abc import Mapping
from time import monotonic
from typing import Literal, Protocol

import aiohttp
import msgspec
from yarl import URL

from app.models.accounts import Account
from app.models.adapters import api_key_of
from app.models.dialects import endpoint_of, model_list_of
from app.models.endpoint import Endpoint
from app.models.http import HttpSession
from app.models.http_errors import translated
from app.models.port import ModelCallError
from app.models.provider_settings import ProviderSettings
from app.models.wire_errors import failure_of_status
from domain.provider_state import ProviderState, state_shown_by

LookedAt = Literal["model_list", "in_process"]
"""What was looked at: the provider's list of models; or nothing, where the provider is in this process."""

_ENOUGH_BYTES = 64 * 1024


class Look(msgspec.Struct, frozen=True, kw_only=True):
    state: ProviderState
    detail: str = ""
    """Why it is not up."""
    took_s: float = 0.0


class Looker(Protocol):
    @property
    def at(self) -> LookedAt: ...

    async def look(self) -> Look:
        """Whatever goes wrong is what was seen."""
        ...


class ScriptLooker:
    """A scripted provider answers as long as its process does. Its script is not read for this."""

    at: LookedAt = "in_process"

    async def look(self) -> Look:
        return Look(state=ProviderState.UP)


class ListLooker:
    """Asks for the list of models, with the key that calls are made with. Vendors charge nothing for it."""

    at: LookedAt = "model_list"

    def __init__(self, url: str, endpoint: Endpoint, http: HttpSession, within_s: float) -> None:
        self._url = URL(url, encoded=True)
        self._endpoint = endpoint
        self._http = http
        self._within_s = within_s

    async def look(self) -> Look:
        began = monotonic()
        state, detail = await self._seen()
        for secret in self._endpoint.secrets:
            detail = detail.replace(secret, "***")
        return Look(state=state, detail=detail, took_s=monotonic() - began)

    async def _seen(self) -> tuple[ProviderState, str]:
        try:
            async with asyncio.timeout(self._within_s):
                return await self._asked()
        except TimeoutError:
            return ProviderState.DOWN, f"no answer within {self._within_s:g} s"
        except (aiohttp.ClientError, OSError) as error:
            return ProviderState.DOWN, translated(error).message
        except ModelCallError as stopping:
            return ProviderState.DOWN, stopping.failure.message

    async def _asked(self) -> tuple[ProviderState, str]:
        headers = {"Accept": "application/json", **self._endpoint.headers}
        response = await self._http.get(self._url, headers, self._within_s)
        try:
            body = await response.content.read(_ENOUGH_BYTES)
            if 200 <= response.status < 300:
                return ProviderState.UP, ""
            failure = failure_of_status(response.status, response.headers, body)
            return state_shown_by(failure), failure.message
        finally:
            response.close()


def lookers_of(
    providers: Mapping[str, ProviderSettings],
    http: HttpSession,
    within_s: float,
    environ: Mapping[str, str] = os.environ,
) -> dict[str, Looker]:
    """One for each provider, with the key that most tenants share."""
    return {name: _looker(name, one, http, within_s, environ) for name, one in providers.items()}


def _looker(
    name: str, settings: ProviderSettings, http: HttpSession, within_s: float, environ: Mapping[str, str]
) -> Looker:
    if settings.type == "scripted":
        return ScriptLooker()
    endpoint = endpoint_of(settings, api_key_of(Account(name), settings, environ))
    return ListLooker(model_list_of(settings, endpoint), endpoint, http, within_s)
