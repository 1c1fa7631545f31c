"""What a host does from time to time is done by one host of all, or there is a reason why each does it."""

from app.main import Host
from tests.hosts import OpenHost, scripted
from tests.http.client import eventually

EVERYTHING = scripted(
    "[providers.script.models.m]\n",
    more="""
[health]
background_interval = "20ms"
[run_reconciliation]
enabled = true
heartbeat_interval = "20ms"
scan_interval = "20ms"
[idempotency]
sweep_interval = "20ms"
[singleton_execution]
enabled = true
""",
)
DUTIES = {"reconciliation", "idempotency", "health", "fleet", "cancels", "approval_expiry"}
"""Under the lease (SINGLE-1)."""
EVERYWHERE = {
    "projections": "each view's position is claimed page by page, in the database",
    "quotas": "what this host has seen of them",
    "event log": "its own writer and wake-ups",
    "last use of keys": "what this host has seen of them",
    "heartbeat": "it vouches for this host's runs",
    "cancels": "they are for this host's runs",
    "periodic duties": "those of the lease",
    "scheduler": "the schedule's own stream decides who fires",
    "keeper of leases": "it keeps this host's jobs",
    "worker": "each job has a lease of its own",
}
"""On every host, and why that is right."""


def rounds(host: Host, duty: str) -> float:
    registry = host.services.metrics.registry
    outcomes = ("done", "postponed", "failed")
    told = (
        registry.get_sample_value("tracon_duties_total", {"duty": duty, "outcome": outcome})
        for outcome in outcomes
    )
    return sum(value or 0.0 for value in told)


async def test_what_is_done_from_time_to_time_is_known_and_goes_through_the_lease(host_of: OpenHost) -> None:
    """SINGLE-1: whoever adds periodic work adds it to one of these lists, and says why."""
    host = await host_of(EVERYTHING)
    assert set(host.duties.names) == DUTIES
    assert {part.get_name() for part in host.parts} == EVERYWHERE.keys()


async def test_of_several_hosts_one_does_all_of_it(host_of: OpenHost) -> None:
    """SINGLE-1"""
    first = await host_of(EVERYTHING)
    await eventually(lambda: all(rounds(first, duty) for duty in DUTIES))
    second = await host_of(EVERYTHING)
    before = rounds(first, "health")
    await eventually(lambda: rounds(first, "health") > before + 5)
    assert [duty for duty in DUTIES if rounds(second, duty)] == []


async def test_where_no_lease_is_wanted_every_host_does_it(host_of: OpenHost) -> None:
    """SINGLE-1: `singleton_execution.enabled` is off by default."""
    toml = EVERYTHING.replace("[singleton_execution]\nenabled = true\n", "")
    one, other = await host_of(toml), await host_of(toml)
    await eventually(lambda: min(rounds(one, "health"), rounds(other, "health")) > 0)
    for host in (one, other):
        registry = host.services.metrics.registry
        assert registry.get_sample_value("tracon_lease_held", {"lease": "periodic-work"}) == 1
