"""The settings of one provider: where it is, how it is spoken to, which models it has."""

from decimal import Decimal
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec

from app.models.scripted_settings import Behaviour, ScriptedModel
from app.settings.durations import PositiveSeconds
from app.settings.sections import BrokenRelation, Count, Section
from domain.pricing import Price

ProviderType = Literal["openai", "openai_responses", "anthropic", "google", "azure_openai", "scripted"]

_NO_SCRIPT = ScriptedModel()
_CREDENTIALS = frozenset({"authorization", "x-api-key", "x-goog-api-key", "api-key"})


class ModelSettings(Section, frozen=True, kw_only=True):
    """What is known of a model. A price is decimal text per million tokens; none is unknown, not free."""

    supports_tools: bool | None = None
    """Must be declared, or the model gets no turn that carries tools (CHAIN-4). Scripted models do."""
    supports_prefill: bool = False
    context_window: Count | None = None
    max_output_tokens: Count | None = None
    """What is asked for where an agent says nothing and the wire insists on a limit."""
    input_per_million: Decimal | None = None
    output_per_million: Decimal | None = None
    cached_input_per_million: Decimal | None = None
    script: tuple[Behaviour, ...] = _NO_SCRIPT.script
    """Scripted models: what each call does, in order."""
    default: Behaviour | tuple[Behaviour, ...] = _NO_SCRIPT.default
    """Scripted models: what calls do after the script, by how many replies the turn has already."""

    def __post_init__(self) -> None:
        for key in ("input_per_million", "output_per_million", "cached_input_per_million"):
            price = getattr(self, key)
            if price is not None and not (price.is_finite() and price >= 0):
                raise BrokenRelation(key, f"{price} is not a price; write a decimal number from 0")
        if (self.input_per_million is None) != (self.output_per_million is None):
            missing = "input_per_million" if self.input_per_million is None else "output_per_million"
            raise BrokenRelation(missing, "is missing: a price is for input and output")
        if self.cached_input_per_million is not None and self.input_per_million is None:
            raise BrokenRelation("input_per_million", "is missing: cached input alone is no price")
        if self.default == ():
            raise BrokenRelation("default", "is empty")

    @property
    def price(self) -> Price | None:
        """None where the price is unknown."""
        if self.input_per_million is None or self.output_per_million is None:
            return None
        return Price(
            input_per_million=self.input_per_million,
            output_per_million=self.output_per_million,
            cached_input_per_million=self.cached_input_per_million,
        )

    @property
    def scripted(self) -> ScriptedModel:
        return ScriptedModel(script=self.script, default=self.default)


class ProviderTimeouts(Section, frozen=True, kw_only=True):
    """Time limits of this provider alone, in place of those of the `chain` section."""

    connect: PositiveSeconds | None = None
    first_content: PositiveSeconds | None = None
    """Does not bind the last link that is left."""
    stream_idle: PositiveSeconds | None = None
    call: PositiveSeconds | None = None


class TenantKey(Section, frozen=True, kw_only=True):
    """Where a tenant's own key for a provider is. Its calls are made with that one, and with no other."""

    api_key_env: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    api_key_file: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    organization: str | None = None
    project: str | None = None
    """Both belong to a key: the provider's own are not sent with this one."""

    def __post_init__(self) -> None:
        _check_key(self.api_key_env, self.api_key_file)
        if self.api_key_env is None and self.api_key_file is None:
            raise BrokenRelation(
                "api_key_env", "is missing, and so is api_key_file: a tenant is here for its key"
            )


class ProviderSettings(Section, frozen=True, kw_only=True):
    """One provider. Its key is read from the environment or from a file, never written here."""

    type: ProviderType
    base_url: str | None = None
    """None: the vendor's own address."""
    api_key_env: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    api_key_file: Annotated[str, msgspec.Meta(min_length=1)] | None = None
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    """Further headers of every request."""
    api_version: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9.-]+$")] | None = None
    """Azure: a dated API version, where a model is a deployment of its own URL. None: the undated API."""
    organization: str | None = None
    project: str | None = None
    instructions_role: Literal["system", "developer"] = "system"
    max_tokens_field: Literal["max_completion_tokens", "max_tokens"] | None = None
    """None: the newer name at the vendor's own address, elsewhere the one that every server knows."""
    stream_usage: bool = True
    """Ask for usage in streams. Off for servers that refuse to be asked."""
    tool_call_ids: Literal["any", "short"] = "any"
    """"short" for servers that insist on ids of nine letters and digits."""
    timeouts: ProviderTimeouts = ProviderTimeouts()
    models: dict[str, ModelSettings] = msgspec.field(default_factory=dict)
    tenants: dict[str, TenantKey] = msgspec.field(default_factory=dict)
    """Tenants with a key of their own. All others share the provider's."""

    def __post_init__(self) -> None:
        if self.base_url is not None:
            _check_url(self.base_url)
        _check_key(self.api_key_env, self.api_key_file)
        if self.tenants:
            self._check_tenants()
        for name, value in self.headers.items():
            _check_header(name, value)
        if self.type != "scripted":
            self._refuse_scripts()
        if self.type == "azure_openai" and self.base_url is None:
            raise BrokenRelation("base_url", "is required: every Azure resource has an address of its own")
        if self.api_version is not None and self.type != "azure_openai":
            raise BrokenRelation("api_version", f"is for azure_openai; this one is {self.type}")

    def supports_tools(self, model: str) -> bool:
        """Whether a turn that carries tools may go to this model (CHAIN-4)."""
        settings = self.models.get(model)
        if settings is None or settings.supports_tools is None:
            return self.type == "scripted"
        return settings.supports_tools

    def _check_tenants(self) -> None:
        if self.type == "scripted":
            raise BrokenRelation("tenants", "are for providers with a key; a scripted one has none")
        if "" in self.tenants:
            raise BrokenRelation("tenants", "has an entry without a name")
        for name in self.headers:
            if name.lower() in _CREDENTIALS:
                raise BrokenRelation(
                    "tenants", f"would have no effect: headers.{name} takes the place of every key"
                )

    def _refuse_scripts(self) -> None:
        for name, model in self.models.items():
            if model.scripted != _NO_SCRIPT:
                key = "script" if model.script else "default"
                raise BrokenRelation(
                    f"models.{name}.{key}", f"is for scripted providers; this one is {self.type}"
                )


def _check_key(env: str | None, file: str | None) -> None:
    if env is not None and file is not None:
        raise BrokenRelation("api_key_file", "and api_key_env are both given; one key is enough")


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port or an IPv6 address that is none
        raise BrokenRelation("base_url", "is not a URL") from None
    if parts.username is not None:
        raise BrokenRelation("base_url", "must not hold credentials; use api_key_env")
    if not usable or parts.query or parts.fragment:
        raise BrokenRelation("base_url", "must be http:// or https://, a host and perhaps a path")


def _check_header(name: str, value: str) -> None:
    if not name or not name.isascii() or any(c <= " " or c == ":" for c in name):
        raise BrokenRelation("headers", f"{name!r} is not a header's name")
    if any(c in value for c in "\r\n\0"):
        raise BrokenRelation(f"headers.{name}", "must be on one line")
