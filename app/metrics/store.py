"""The event log and the views of it."""

from prometheus_client import CollectorRegistry, Gauge, Histogram

from app.metrics.series import Series

_APPEND_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30)
_BATCH_EVENTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class StoreSeries(Series):
    """The event log and the views of it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.store_up = Gauge(
            "tracon_store_up",
            "1 while the event store answers, 0 while it does not.",
            registry=registry,
        )
        self.append_seconds = Histogram(
            "tracon_append_seconds",
            "Time to make a batch of events durable.",
            ["outcome"],
            buckets=_APPEND_SECONDS,
            registry=registry,
        )
        self.append_events = Histogram(
            "tracon_append_events",
            "Events that went into one batch.",
            buckets=_BATCH_EVENTS,
            registry=registry,
        )
        self.projection_lag = Gauge(
            "tracon_projection_lag_events",
            "How far a projection is behind the end of the log, in log positions.",
            ["projection"],
            registry=registry,
        )
        self.projection_lag_seconds = Gauge(
            "tracon_projection_lag_seconds",
            "Age of the oldest event that a projection has not folded.",
            ["projection"],
            registry=registry,
        )
        self.projection_stopped = Gauge(
            "tracon_projection_stopped",
            "1 while a projection cannot go on: it met an event that it could not fold.",
            ["projection"],
            registry=registry,
        )
