"""Every series that a host shows to Prometheus, on its own registry so that two hosts fit in one test."""

from prometheus_client import CollectorRegistry

from app.metrics.calls import CallSeries
from app.metrics.host import HostSeries
from app.metrics.http import HttpSeries
from app.metrics.jobs import JobSeries
from app.metrics.runs import RunSeries
from app.metrics.store import StoreSeries


class Metrics(HttpSeries, RunSeries, CallSeries, StoreSeries, JobSeries, HostSeries):
    """The series, one attribute each. Labels come from closed sets; an id of a run, call or key is never one.

    | label | values |
    |---|---|
    | `route` | the path templates of the API, and `unmatched` |
    | `method`, `status` | HTTP methods that are served, and `OTHER`; status codes that were answered |
    | `status` (runs) | `Completed`, `Failed`, `Cancelled`, `AwaitingApproval`, `AwaitingInput` |
    | `agent`, `provider`, `model`, `tool` | names from the settings file and from code |
    | `outcome` (model calls) | `replied`, or the failure class |
    | `outcome` (tool calls) | `returned`, or the kind of failure, or `left_behind` |
    | `outcome` (appends) | `written`, `conflict`, `unavailable` |
    | `outcome` (idempotent requests) | `executed`, `replayed`, `in_progress`, `reused` |
    | `direction` | `input`, `output`, `cached_input`, `reasoning` |
    | `lane` | lanes of the settings |
    | `kind`, `outcome` (workflow nodes) | `agent`, `function`; `completed`, `failed`, `retried`, `refused` |
    | `outcome` (cancels) | `queued`, `here`, `elsewhere`, `withdrawn`, `already_ended`, |
    | | `owner_gone`, `not_here` |
    | `outcome` (duties) | `done`, `postponed`, `failed` |
    | `outcome` (approvals) | `requested`, `approved`, `rejected` (some call), `expired`, `withdrawn` |
    | `duty`, `lease` | names of periodic duties and of leases |
    | `outcome` (schedule firings) | `fired`, `skipped`, `beaten` |
    | `trigger` | names of triggers in the settings |
    | `outcome` (trigger deliveries) | `queued`, `repeated`, `refused` |
    | `cause` | why an interrupted run is not continued (`ContinuationBlock`) |
    | `projection` | names of projections |
    """

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        super().__init__(registry or CollectorRegistry())
