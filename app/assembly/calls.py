"""What stands around a host's model calls, and what is known of its models."""

from collections.abc import Mapping
from dataclasses import dataclass

from app.assembly.ground import Ground
from app.models.accounts import Accounts
from app.models.circuits import Circuits
from app.models.classifiers import Classifiers
from app.models.gate import Gate
from app.models.http import HttpSession
from app.models.patience import TimeLimits
from app.models.places import Places
from app.models.provider_settings import ProviderSettings
from app.models.response_cache import ResponseCache
from app.settings.whole import Settings
from domain.agent import Link
from domain.chain.policy import ChainLink
from domain.pricing import Price


@dataclass(frozen=True, kw_only=True)
class Calls:
    """How models are called: on whose account, and through which gate."""

    http: HttpSession
    accounts: Accounts
    circuits: Circuits
    gate: Gate


def calls_of(ground: Ground, http: HttpSession, accounts: Accounts) -> Calls:
    """One gate for all model calls of the host."""
    settings, metrics = ground.settings, ground.metrics
    circuits = Circuits(settings.circuit_breaker, metrics, accounts)
    limit = settings.model_concurrency.max_concurrent_calls_per_provider
    classifiers = Classifiers(
        ground.definitions.app.classifiers,
        settings.chain.classifiers,
        retry_after_cap_s=settings.chain.retry_after_cap,
    )
    gate = Gate(
        circuits,
        classifiers,
        None if limit is None else Places(limit, metrics),
        ResponseCache(settings.response_cache),
        metrics.model_calls_live,
    )
    return Calls(http=http, accounts=accounts, circuits=circuits, gate=gate)


def chain_link_of(providers: Mapping[str, ProviderSettings], link: Link) -> ChainLink:
    """A link, and what its model was declared to be able to do."""
    provider = providers[link.provider]
    known = provider.models.get(link.model)
    return ChainLink(
        link=link,
        supports_tools=provider.supports_tools(link.model),
        supports_prefill=known is not None and known.supports_prefill,
        context_window=known.context_window if known else None,
    )


def prices_of(providers: Mapping[str, ProviderSettings]) -> dict[Link, Price]:
    """The price of each link that has one."""
    return {
        Link(provider=name, model=model): known.price
        for name, provider in providers.items()
        for model, known in provider.models.items()
        if known.price is not None
    }


def time_limits_of(settings: Settings) -> TimeLimits:
    """The time limits of every model call (CLASS-2)."""
    chain = settings.chain
    return TimeLimits(
        connect_s=chain.connect_timeout, idle_s=chain.stream_idle_timeout, call_s=chain.call_timeout
    )
