"""What every group of series is."""

from prometheus_client import CollectorRegistry


class Series:
    """Some of a host's series, one attribute each. Groups are put together by inheriting from all of them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
