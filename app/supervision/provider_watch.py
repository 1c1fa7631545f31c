"""Looks at every provider from time to time, for all hosts; and what was seen last."""

import asyncio
from collections.abc import Mapping
from datetime import datetime

import asyncpg
import msgspec

from app.db.impatience import answered_within
from app.db.pool import translated
from app.metrics import Metrics
from app.models.looking import LookedAt, Looker
from app.supervision.singleton import Term
from app.supervision.sql import sql
from domain.provider_state import ProviderState
from projections.values import storable

_SEEN_WITHIN_S = 1.0


class Sighting(msgspec.Struct, frozen=True, kw_only=True):
    """What a host saw of the provider when it looked, with nobody calling. It decides nothing."""

    state: ProviderState
    detail: str
    """Why it is not up."""
    took_s: float
    age_s: float
    """How long ago that was, by the database's clock."""
    at: datetime
    source: LookedAt


class ProviderWatch:
    """A look is no call: it takes no place, and no circuit hears of it, whatever it shows (BREAK-1).

    That a list of models is to be had says nothing about the models, so it must not close a circuit that
    calls have opened, nor end a row of failures; and nobody's call has failed when it is not to be had.
    """

    def __init__(self, pool: asyncpg.Pool, lookers: Mapping[str, Looker], metrics: Metrics) -> None:
        self._pool = pool
        self._lookers = lookers
        self._metrics = metrics

    async def look(self, term: Term) -> None:
        """One round. Raise StoreUnavailable."""
        names = sorted(self._lookers)
        looks = await asyncio.gather(*(self._lookers[name].look() for name in names))
        for name, seen in zip(names, looks, strict=True):
            self._metrics.provider_up.labels(name).set(seen.state is ProviderState.UP)
        if term.lasts():
            states, details = [seen.state for seen in looks], [storable(seen.detail) for seen in looks]
            with translated():
                took_s = [seen.took_s for seen in looks]
                await self._pool.execute(sql("note_health"), names, states, details, took_s)

    async def seen(self) -> dict[str, Sighting]:
        """What was seen last of each provider, by whichever host. Raise StoreUnavailable soon."""
        with translated():
            rows = await answered_within(
                _SEEN_WITHIN_S, self._pool.fetch(sql("provider_health"), list(self._lookers))
            )
        return {row["provider"]: self._sighting(row) for row in rows}

    def _sighting(self, row: asyncpg.Record) -> Sighting:
        return Sighting(
            state=ProviderState(row["state"]),
            detail=row["detail"],
            took_s=row["took_s"],
            age_s=row["age_s"],
            at=row["checked_at"],
            source=self._lookers[row["provider"]].at,
        )
