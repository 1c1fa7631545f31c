"""From a provider's settings to the adapter that makes its calls."""

import os
from collections.abc import Mapping
from pathlib import Path

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


def build(
    name: str, settings: ProviderSettings, http: HttpSession, environ: Mapping[str, str] = os.environ
) -> ModelAdapter:
    """The adapter of the provider `name`. Raise ProviderMisconfigured when its key is missing."""
    limits = limits_of(settings, http.limits)
    if settings.type == "scripted":
        models = {model: declared.scripted for model, declared in settings.models.items()}
        return ScriptedAdapter(models, limits)
    key = _api_key(name, settings, environ)
    if key is None and settings.base_url is None:
        raise ProviderMisconfigured(
            f"provider {name!r}: {VENDORS[settings.type]} needs a key; set api_key_env"
        )
    return HttpAdapter(name, dialect_of(name, settings, key), http, limits)


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


def _api_key(name: str, settings: ProviderSettings, environ: Mapping[str, str]) -> str | None:
    """The key, or None where the settings name none. An error names the place, never the key."""
    if settings.api_key_env is not None:
        place = f"the environment variable {settings.api_key_env}"
        key = environ.get(settings.api_key_env, "").strip()
    elif settings.api_key_file is not None:
        place = f"the file {settings.api_key_file}"
        key = _read(name, settings.api_key_file)
    else:
        return None
    if not key:
        raise ProviderMisconfigured(f"provider {name!r}: its key is missing; {place} is empty or not set")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise ProviderMisconfigured(f"provider {name!r}: {place} does not hold a key that fits into a header")
    return key


def _read(name: str, file: str) -> str:
    try:
        return Path(file).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise ProviderMisconfigured(
            f"provider {name!r}: its key file {file} cannot be read: {reason}"
        ) from error
