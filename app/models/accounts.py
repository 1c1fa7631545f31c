"""With whose key a provider is called: its own, or that of the tenant whose run it is."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from app.models.port import ModelAdapter


class Account(NamedTuple):
    """A provider, and whose key its calls are made with. Each has its own circuit and places (BREAK-1)."""

    provider: str
    tenant: str = ""
    """The tenant whose own key it is; empty: the provider's, which all other tenants share."""

    def __str__(self) -> str:
        """As it stands in records that only the same account may use again."""
        return f"{self.provider}@{self.tenant}" if self.tenant else self.provider


class Accounts:
    """What this host can call, and on whose account. They do not change while it runs."""

    def __init__(self, adapters: Mapping[Account, ModelAdapter]) -> None:
        self._adapters = dict(adapters)

    def __iter__(self) -> Iterator[Account]:
        return iter(self._adapters)

    def of(self, provider: str, tenant: str) -> Account:
        """The account that a tenant's calls to a provider are made on."""
        own = Account(provider, tenant)
        return own if own in self._adapters else Account(provider)

    def adapter(self, account: Account) -> ModelAdapter:
        """What makes the calls of this account."""
        return self._adapters[account]
