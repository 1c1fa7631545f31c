"""A provider's settings are checked before anything starts, and every complaint names its key."""

import tomllib
from decimal import Decimal
from pathlib import Path

import msgspec
import pytest

from app.models.accounts import Account
from app.models.adapters import ProviderMisconfigured, accounts_of, build, limits_of
from app.models.dialects import dialect_of
from app.models.http import HttpSession
from app.models.http_adapter import HttpAdapter
from app.models.patience import TimeLimits
from app.models.port import ModelRequest
from app.models.provider_settings import ProviderSettings, ProviderType, TenantKey
from app.settings.load import SettingsError, load_settings
from domain.pricing import Price


def settings(toml: str) -> ProviderSettings:
    return msgspec.convert(tomllib.loads(toml), ProviderSettings)


def test_the_documented_example_is_read() -> None:
    provider = settings(
        """
        type = "openai"
        base_url = "http://127.0.0.1:9001/v1"
        api_key_env = "PRIMARY_KEY"
        [models.small]
        supports_tools = true
        context_window = 128000
        input_per_million = "0.15"
        output_per_million = "0.60"
        """
    )
    small = provider.models["small"]
    assert small.context_window == 128_000
    assert small.price == Price(input_per_million=Decimal("0.15"), output_per_million=Decimal("0.60"))


def test_a_price_that_is_not_given_is_unknown() -> None:
    assert settings('type = "openai"\n[models.small]').models["small"].price is None


@pytest.mark.parametrize(
    ("toml", "supported"),
    [
        ('type = "openai"', False),
        ('type = "openai"\n[models.m]', False),
        ('type = "openai"\n[models.m]\nsupports_tools = true', True),
        ('type = "scripted"\n[models.m]', True),
        ('type = "scripted"\n[models.m]\nsupports_tools = false', False),
    ],
)
def test_support_for_tools_must_be_declared(toml: str, supported: bool) -> None:
    """CHAIN-4."""
    assert settings(toml).supports_tools("m") is supported


@pytest.mark.parametrize(
    ("toml", "key"),
    [
        ('type = "openaai"', "type"),
        ('type = "openai"\nbase_urll = "x"', "base_urll"),
        ('type = "openai"\nbase_url = "127.0.0.1:9001"', "base_url"),
        ('type = "openai"\nbase_url = "ftp://host/v1"', "base_url"),
        ('type = "openai"\nbase_url = "http://user:pass@host/v1"', "base_url"),
        ('type = "openai"\nbase_url = "http://host/v1?key=1"', "base_url"),
        ('type = "openai"\nbase_url = "http://host:99999999/v1"', "base_url"),
        ('type = "openai"\napi_key_env = "A"\napi_key_file = "b"', "api_key_file"),
        ('type = "openai"\n[headers]\n"X Y" = "1"', "headers"),
        ('type = "openai"\n[tenants.acme]', "tenants.acme.api_key_env"),
        (
            'type = "openai"\n[tenants.acme]\napi_key_env = "A"\napi_key_file = "b"',
            "tenants.acme.api_key_file",
        ),
        ('type = "openai"\n[tenants.acme]\napi_key = "sk"', "tenants.acme.api_key"),
        ('type = "openai"\n[tenants.""]\napi_key_env = "A"', "tenants"),
        ('type = "scripted"\n[tenants.acme]\napi_key_env = "A"', "tenants"),
        ('type = "openai"\nheaders = {X-API-Key = "k"}\n[tenants.acme]\napi_key_env = "A"', "tenants"),
        ('type = "openai"\n[headers]\nX = "1\\r\\nY: 2"', "headers.X"),
        ('type = "openai"\ntimeouts = {connect = 0}', "timeouts.connect"),
        (
            'type = "openai"\n[models.m]\ninput_per_million = "-1"\noutput_per_million = "1"',
            "input_per_million",
        ),
        (
            'type = "openai"\n[models.m]\ninput_per_million = "nan"\noutput_per_million = "1"',
            "input_per_million",
        ),
        ('type = "openai"\n[models.m]\ninput_per_million = "1"', "output_per_million"),
        ('type = "openai"\n[models.m]\noutput_per_million = "1"', "input_per_million"),
        ('type = "openai"\n[models.m]\ncached_input_per_million = "1"', "input_per_million"),
        ('type = "openai"\n[models.m]\ncontext_window = 0', "context_window"),
        ('type = "openai"\n[models.m]\nscript = [{text = "a"}]', "models.m.script"),
        ('type = "openai"\n[models.m]\ndefault = {text = "a"}', "models.m.default"),
        ('type = "scripted"\n[models.m]\ndefault = []', "default"),
        ('type = "scripted"\n[models.m]\nscript = [{txt = "a"}]', "models.m.script.0.txt"),
        ('type = "scripted"\n[models.m]\ndefault = [{text = "a"}, {}]', "models.m.default.1"),
    ],
)
def test_a_wrong_setting_is_refused_by_its_key(toml: str, key: str, tmp_path: Path) -> None:
    file = tmp_path / "tracon.toml"
    head, _, tables = toml.partition("\n[")
    tables = f"[providers.p.{tables}" if tables else ""
    file.write_text(f"[providers.p]\n{head}\n{tables}")
    with pytest.raises(SettingsError) as caught:
        load_settings(file, {})
    assert f"providers.p.{key}" in str(caught.value) or f"providers.p.models.m.{key}" in str(caught.value)


def test_durations_in_a_script_are_written_like_all_others(tmp_path: Path) -> None:
    file = tmp_path / "tracon.toml"
    file.write_text(
        """
        [providers.p]
        type = "scripted"
        timeouts = {stream_idle = "5s"}
        [providers.p.models.m]
        script = [{text = "a b", delay = "20ms"}]
        default = {echo = true, first_delay = "1m"}
        [providers.p.models.n]
        default = [{echo = true, delay = "00:00:02"}]
        """
    )
    provider = load_settings(file, {}).providers["p"]
    assert provider.timeouts.stream_idle == 5
    first, second = provider.models["m"], provider.models["n"]
    assert first.script[0].delay == 0.02
    assert not isinstance(first.default, tuple)
    assert first.default.first_delay == 60
    assert isinstance(second.default, tuple)
    assert second.default[0].delay == 2


def test_own_time_limits_stand_in_front_of_the_common_ones() -> None:
    own = settings('type = "openai"\ntimeouts = {connect = 1, stream_idle = 2, call = 3, first_content = 4}')
    common = TimeLimits(connect_s=10, idle_s=20, call_s=30)
    assert limits_of(own, common) == TimeLimits(connect_s=1, idle_s=2, call_s=3, first_content_s=4)
    assert limits_of(settings('type = "openai"'), common) == common


def test_a_missing_key_is_named_with_its_provider() -> None:
    provider = settings('type = "openai"\nbase_url = "http://host/v1"\napi_key_env = "PRIMARY_KEY"')
    for environ in ({}, {"PRIMARY_KEY": "  "}):
        with pytest.raises(ProviderMisconfigured, match=r"'primary'.*PRIMARY_KEY"):
            build(Account("primary"), provider, HttpSession(), environ)


def test_a_tenants_missing_key_is_named_with_its_tenant() -> None:
    tenants = {"acme": TenantKey(api_key_env="ACME_KEY")}
    provider = ProviderSettings(type="openai", api_key_env="KEY", tenants=tenants)
    with pytest.raises(ProviderMisconfigured, match=r"'primary', tenant 'acme'.*ACME_KEY"):
        accounts_of({"primary": provider}, HttpSession(), {"KEY": "k"})


def test_whose_account_a_tenants_calls_are_made_on() -> None:
    """BREAK-1: its own where it has a key there, and only there."""
    tenants = {"acme": TenantKey(api_key_env="ACME_KEY")}
    primary = ProviderSettings(type="openai", api_key_env="KEY", tenants=tenants)
    backup = ProviderSettings(type="anthropic", api_key_env="KEY")
    environ = {"KEY": "k", "ACME_KEY": "a"}
    accounts = accounts_of({"primary": primary, "backup": backup}, HttpSession(), environ)
    assert accounts.of("primary", "acme") == Account("primary", "acme")
    assert accounts.of("backup", "acme") == Account("backup")
    assert accounts.of("primary", "other") == accounts.of("primary", "") == Account("primary")
    assert list(accounts) == [Account("primary"), Account("primary", "acme"), Account("backup")]


def test_a_key_that_fits_into_no_header_is_refused_without_being_told() -> None:
    provider = settings('type = "openai"\nbase_url = "http://host/v1"\napi_key_env = "KEY"')
    with pytest.raises(ProviderMisconfigured) as caught:
        build(Account("primary"), provider, HttpSession(), {"KEY": "sk-two\nlines"})
    assert "sk-" not in str(caught.value)


def test_the_vendors_own_address_needs_a_key() -> None:
    with pytest.raises(ProviderMisconfigured, match="api_key_env"):
        build(Account("primary"), settings('type = "openai"'), HttpSession(), {})


@pytest.mark.parametrize("kind", ["openai", "openai_responses", "anthropic", "google", "azure_openai"])
def test_a_header_of_the_settings_takes_the_place_of_ours_however_it_is_spelt(kind: ProviderType) -> None:
    credentials = {"authorization": "a", "x-api-key": "b", "x-goog-api-key": "c", "api-key": "d"}
    provider = ProviderSettings(type=kind, base_url="http://host", headers=credentials)
    post = dialect_of("p", provider, "sk-ours").post(ModelRequest(model="m", messages=()), stream=True)
    assert "sk-ours" not in repr(post.headers)
    assert len({name.lower() for name in post.headers}) == len(post.headers)


def test_a_key_can_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    provider = settings(f'type = "openai"\napi_key_file = "{file}"')
    with pytest.raises(ProviderMisconfigured, match=r"'primary'.*key"):
        build(Account("primary"), provider, HttpSession(), {})
    file.write_text("sk-from-a-file\n")
    assert isinstance(build(Account("primary"), provider, HttpSession(), {}), HttpAdapter)
