"""From a provider's settings to the adapters that make its calls, one for each key."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from app.models.accounts import Account, Accounts
from app.models.dialects import VENDORS, dialect_of
from app.models.http import HttpSession
from app.models.http_adapter import HttpAdapter
from app.models.patience import TimeLimits
from app.models.port import ModelAdapter
from app.models.provider_settings import ProviderSettings
from app.models.scripted import ScriptedAdapter
from domain.errors import Rejected


class ProviderMisconfigured(Rejected):
    """A provider's settings cannot be used on this machine. Correct what the message names, start again."""

    code = "provider_misconfigured"


def accounts_of(
    providers: Mapping[str, ProviderSettings], http: HttpSession, environ: Mapping[str, str] = os.environ
) -> Accounts:
    """Everything that can be called. Raise ProviderMisconfigured when a key is missing."""
    return Accounts(
        {
            account: build(account, settings, http, environ)
            for name, provider in providers.items()
            for account, settings in each_account(name, provider)
        }
    )


def each_account(name: str, settings: ProviderSettings) -> Iterator[tuple[Account, ProviderSettings]]:
    """The provider's own account, then that of each tenant with a key, with the settings for its calls."""
    yield Account(name), settings
    for tenant, own in settings.tenants.items():
        yield (
            Account(name, tenant),
            msgspec.structs.replace(settings, **msgspec.structs.asdict(own), tenants={}),
        )


def build(
    account: Account, settings: ProviderSettings, http: HttpSession, environ: Mapping[str, str] = os.environ
) -> ModelAdapter:
    """The adapter of this account. Raise ProviderMisconfigured when its key is missing."""
    limits = limits_of(settings, http.limits)
    if settings.type == "scripted":
        models = {model: declared.scripted for model, declared in settings.models.items()}
        return ScriptedAdapter(models, limits)
    key = api_key_of(account, settings, environ)
    if key is None and settings.base_url is None:
        raise ProviderMisconfigured(
            f"{_named(account)}: {VENDORS[settings.type]} needs a key; set api_key_env"
        )
    # What a provider keeps of a reply may be bound to the key that asked for it.
    dialect = dialect_of(str(account), settings, key)
    return HttpAdapter(account.provider, dialect, http, limits)


def limits_of(settings: ProviderSettings, common: TimeLimits) -> TimeLimits:
    """The common time limits, with this provider's own where it has any."""
    own = settings.timeouts
    return TimeLimits(
        connect_s=own.connect or common.connect_s,
        idle_s=own.stream_idle or common.idle_s,
        tail_s=common.tail_s,
        call_s=own.call or common.call_s,
        first_content_s=own.first_content or common.first_content_s,
    )


def api_key_of(account: Account, settings: ProviderSettings, environ: Mapping[str, str]) -> str | None:
    """The key, or None where the settings name none. An error names the place, never the key."""
    if settings.api_key_env is not None:
        place = f"the environment variable {settings.api_key_env}"
        key = environ.get(settings.api_key_env, "").strip()
    elif settings.api_key_file is not None:
        place = f"the file {settings.api_key_file}"
        key = _read(account, settings.api_key_file)
    else:
        return None
    if not key:
        raise ProviderMisconfigured(f"{_named(account)}: its key is missing; {place} is empty or not set")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ProviderMisconfigured(f"{_named(account)}: {place} does not hold a key that fits into a header")
    return key


def _read(account: Account, file: str) -> str:
    try:
        return Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ProviderMisconfigured(
            f"{_named(account)}: its key file {file} cannot be read: {reason}"
        ) from error


def _named(account: Account) -> str:
    return f"provider {account.provider!r}" + (f", tenant {account.tenant!r}" if account.tenant else "")
