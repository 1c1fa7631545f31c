"""A provider's key is in no message, no error and no log."""

import logging

import pytest

from app.models.accounts import Account
from app.models.adapters import build
from app.models.http import HttpSession
from app.models.port import ModelAdapter, ModelCallError
from app.models.provider_settings import ProviderSettings
from tests.models.calling import asking, chain_of, streamed
from tests.models.conftest import KEY
from tests.upstream.server import Upstream

FAILING = ["401", "reset", "cut-2", "not-http", "200-page", "200-no-json", "broken-event", "echoes-the-key"]


@pytest.mark.parametrize("model", FAILING)
async def test_no_error_and_nothing_that_hangs_on_it_holds_the_key(
    model: str, chat: ModelAdapter, upstream: Upstream, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    try:
        await chat.complete(asking(model))
    except ModelCallError as error:
        told = [repr(each) + str(each) + repr(vars(each)) for each in chain_of(error)]
        assert not any(KEY in text for text in told)
    await streamed(chat, asking(model))
    assert upstream.log.of(model)[0].headers["Authorization"] == f"Bearer {KEY}", "the call was made with it"
    assert KEY not in caplog.text


async def test_an_unreachable_provider_does_not_tell_the_key(http: HttpSession) -> None:
    settings = ProviderSettings(type="openai", base_url="http://127.0.0.1:1/v1", api_key_env="KEY")
    with pytest.raises(ModelCallError) as caught:
        await build(Account("p"), settings, http, {"KEY": KEY}).complete(asking("text"))
    assert not any(KEY in repr(each) + repr(vars(each)) for each in chain_of(caught.value))
