"""Holds what all hosts say of themselves against what the log says, for whoever looks at the metrics."""

import math

import asyncpg

from app.db.pool import translated
from app.metrics import Metrics
from app.supervision.singleton import Term
from app.supervision.sql import sql


class Fleet:
    """A duty of one host of all, so that a scrape asks the database for nothing and cannot hang in it.

    Other hosts show no figures for the fleet: theirs would be old.
    """

    def __init__(self, pool: asyncpg.Pool, silence_s: float, metrics: Metrics) -> None:
        self._pool = pool
        self._silence_s = silence_s
        self._metrics = metrics
        self.leave()

    async def count(self, term: Term) -> None:
        """One round. Raise StoreUnavailable."""
        with translated():
            row = await self._pool.fetchrow(sql("fleet"), self._silence_s)
        if row is not None and term.lasts():
            self._show(row)

    def leave(self) -> None:
        """Another host counts from here on."""
        metrics = self._metrics
        for gauge in (
            metrics.hosts_alive,
            metrics.runs_running,
            metrics.runs_unaccounted,
            metrics.runs_silent,
            metrics.cancels_pending,
        ):
            gauge.set(math.nan)
        metrics.lease_age.clear()

    def _show(self, row: asyncpg.Record) -> None:
        metrics = self._metrics
        metrics.hosts_alive.set(row["hosts"])
        metrics.runs_running.set(row["running"])
        metrics.runs_unaccounted.set(row["running"] + row["waiting"] - row["live"])
        metrics.runs_silent.set(row["silent"])
        metrics.cancels_pending.set(row["cancels"])
        metrics.lease_age.clear()
        for name, age_s in row["lease_ages"].items():
            metrics.lease_age.labels(name).set(age_s)
