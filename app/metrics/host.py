"""This host, its duties, and what it sees of the others."""

from prometheus_client import CollectorRegistry, Counter, Gauge, ProcessCollector

from app.metrics.series import Series


class HostSeries(Series):
    """This host, its duties, and what it sees of the others."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.build_info = Gauge(
            "tracon_build_info",
            "Always 1; the labels say what runs here.",
            ["version", "python"],
            registry=registry,
        )
        ProcessCollector(namespace="tracon", registry=registry)
        self.heartbeat_failures = Counter(
            "tracon_heartbeat_failures_total",
            "Heartbeats that could not be written. The next one was tried all the same.",
            registry=registry,
        )
        self.heartbeat_age = Gauge(
            "tracon_heartbeat_age_seconds",
            "Time since this host's last heartbeat that was written.",
            registry=registry,
        )
        self.runs_fenced = Counter(
            "tracon_runs_fenced_total",
            "Runs that this host let go because somebody else had closed them.",
            registry=registry,
        )
        self.cancels = Counter(
            "tracon_cancels_total", "Requests to cancel a run.", ["outcome"], registry=registry
        )
        self.draining = Gauge(
            "tracon_draining", "1 while this host takes no new runs because it stops.", registry=registry
        )
        self.lease_held = Gauge(
            "tracon_lease_held",
            "1 while this host does the work that the lease is for.",
            ["lease"],
            registry=registry,
        )
        self.duties = Counter(
            "tracon_duties_total",
            "Rounds of a periodic duty on this host.",
            ["duty", "outcome"],
            registry=registry,
        )
        self.runs_continued = Counter(
            "tracon_runs_continued_total",
            "Runs that this host opened in place of interrupted ones.",
            registry=registry,
        )
        self.continuations_blocked = Counter(
            "tracon_continuations_blocked_total",
            "Interrupted runs that are not continued, by why.",
            ["cause"],
            registry=registry,
        )
        self.runs_orphaned = Counter(
            "tracon_runs_orphaned_total",
            "Runs that this host closed because nobody answered for them any more.",
            registry=registry,
        )
        self.reconciliation_conflicts = Counter(
            "tracon_reconciliation_conflicts_total",
            "Runs that turned out to be alive, or to be closed by somebody else, when this host closed them.",
            registry=registry,
        )
        self.hosts_alive = Gauge(
            "tracon_hosts_alive",
            "Hosts that were heard of lately, this one included.",
            registry=registry,
        )
        self.runs_running = Gauge(
            "tracon_runs_running", "Runs that the log says are running, on all hosts.", registry=registry
        )
        self.runs_unaccounted = Gauge(
            "tracon_runs_unaccounted",
            "Runs that the log says are live, less those that hosts say they have. More than zero: nobody has"
            " them.",
            registry=registry,
        )
        self.runs_silent = Gauge(
            "tracon_runs_silent",
            "Runs whose last heartbeat is older than the orphan threshold.",
            registry=registry,
        )
        self.cancels_pending = Gauge(
            "tracon_cancels_pending",
            "Cancels that were accepted and whose runs have not ended.",
            registry=registry,
        )
        self.lease_age = Gauge(
            "tracon_lease_age_seconds",
            "Time since the lease was renewed, by whichever host holds it.",
            ["lease"],
            registry=registry,
        )
        self.model_calls_live = Gauge(
            "tracon_model_calls_live",
            "Calls to the provider that are under way.",
            ["provider"],
            registry=registry,
        )
