"""Queued runs, schedules and triggers."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from app.metrics.series import Series

_WAIT_SECONDS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 30, 60, 300, 1800, 7200)


class JobSeries(Series):
    """Queued runs, schedules and triggers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.jobs_live = Gauge("tracon_jobs_live", "Jobs that this host's worker has.", registry=registry)
        self.jobs_waiting = Gauge(
            "tracon_jobs_waiting",
            "Jobs that no worker has yet, of all hosts.",
            ["lane"],
            registry=registry,
        )
        self.job_oldest_seconds = Gauge(
            "tracon_job_oldest_seconds",
            "Age of the oldest job that no worker has yet, by the database's clock.",
            ["lane"],
            registry=registry,
        )
        self.job_wait_seconds = Histogram(
            "tracon_job_wait_seconds",
            "Time from a job's submission until a worker leased it, by the database's clock.",
            ["lane"],
            buckets=_WAIT_SECONDS,
            registry=registry,
        )
        self.job_leases_lost = Counter(
            "tracon_job_leases_lost_total",
            "Leases that ended before this host was done with the job. Its run was stopped here.",
            registry=registry,
        )
        self.jobs_exhausted = Counter(
            "tracon_jobs_exhausted_total",
            "Jobs that were given up because their last worker was gone.",
            ["lane"],
            registry=registry,
        )
        self.schedule_firings = Counter(
            "tracon_schedule_firings_total",
            "Due times of schedules that this host settled.",
            ["outcome"],
            registry=registry,
        )
        self.trigger_deliveries = Counter(
            "tracon_trigger_deliveries_total",
            "Signed requests to inbound triggers. One whose trigger does not exist is counted under none.",
            ["trigger", "outcome"],
            registry=registry,
        )
