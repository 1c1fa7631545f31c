"""The series of a host."""

from prometheus_client import generate_latest

from app.metrics import Metrics


def test_every_series_is_tracons_and_says_what_it_is() -> None:
    for family in Metrics().registry.collect():
        assert family.name.startswith("tracon_"), family.name
        assert family.documentation.endswith("."), family.name


def test_two_hosts_in_one_process_do_not_share_a_count() -> None:
    one, other = Metrics(), Metrics()
    one.runs_started.labels("support").inc()
    assert b'tracon_runs_started_total{agent="support"} 1.0' in generate_latest(one.registry)
    assert b"support" not in generate_latest(other.registry)


def test_no_series_has_a_label_that_grows_without_end() -> None:
    closed = {"agent", "direction", "method", "model", "outcome", "projection", "provider", "python", "route"}
    closed |= {
        "cause",
        "duty",
        "fallback",
        "kind",
        "lane",
        "lease",
        "limit",
        "primary",
        "quota",
        "status",
        "tool",
        "trigger",
        "version",
        "what",
    }
    labels = {name for series in vars(Metrics()).values() for name in getattr(series, "_labelnames", ())}
    assert labels == closed
