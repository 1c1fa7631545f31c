"""Requests and connections of clients."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from app.metrics.series import Series

_HTTP_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class HttpSeries(Series):
    """Requests and connections of clients."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.http_requests = Counter(
            "tracon_http_requests_total",
            "Requests answered. An event stream counts when it ends.",
            ["method", "route", "status"],
            registry=registry,
        )
        self.http_request_seconds = Histogram(
            "tracon_http_request_seconds",
            "Time to answer a request, event streams left out; a run that is waited for included.",
            ["method", "route"],
            buckets=_HTTP_SECONDS,
            registry=registry,
        )
        self.idempotent_requests = Counter(
            "tracon_idempotent_requests_total",
            "Requests with an Idempotency-Key, by what became of them.",
            ["outcome"],
            registry=registry,
        )
        self.http_connections = Gauge(
            "tracon_http_connections", "Client connections that are open.", registry=registry
        )
        self.sse_streams = Gauge("tracon_sse_streams", "Event streams that are open now.", registry=registry)
