"""The whole API on one screen. The router and /openapi.json are both made from this table (HTTP-5)."""

from app.http.agent_definitions import (
    AgentBody,
    VersionsPage,
    define_agent,
    list_versions,
    remove_agent,
)
from app.http.agents import AgentList, get_agent, list_agents, start_run
from app.http.api_keys import KeyList, NewKey, create_key, list_keys, revoke_key
from app.http.approvals import ApprovalsQuery, DecideBody, decide_approval, get_approval, list_approvals
from app.http.batches import create_batch, get_batch
from app.http.bodies import (
    CancelBody,
    CancelQuery,
    CompleteKeyBody,
    CreateKeyBody,
    EventsQuery,
    KeysQuery,
    ListQuery,
    RunsQuery,
    StartRunBody,
    StatsQuery,
    TreeQuery,
)
from app.http.cancelling import CancelAccepted, CancelReceipt, cancel_run
from app.http.event_list import EventList
from app.http.events import list_events
from app.http.host import Health, Meta, get_meta, get_metrics, get_openapi, is_live, is_ready
from app.http.idempotency_keys import KeyDecided, complete_key, list_idempotency_keys, release_key
from app.http.job_bodies import BatchBody, CreateScheduleBody, JobsQuery, ReplaceScheduleBody
from app.http.jobs import get_job, list_jobs
from app.http.models import ProviderList, get_health
from app.http.openai.routes import OPENAI_ROUTES
from app.http.outcomes import RunAnswer
from app.http.quotas import QuotaList, list_quotas
from app.http.replaying import compare_runs, replay_run
from app.http.route import Route, delete, get, post, put
from app.http.run_bodies import ReplayBody, ResolveBody, ToolsQuery
from app.http.run_tools import Resolution, list_calls, resolve_call
from app.http.runs import (
    RunInput,
    ToolCallList,
    get_input,
    get_run,
    get_tree,
    list_runs,
    list_tool_calls,
)
from app.http.schedules import (
    create_schedule,
    get_schedule,
    list_schedules,
    pause_schedule,
    remove_schedule,
    replace_schedule,
    resume_schedule,
    trigger_schedule,
)
from app.http.stats import get_stats
from app.http.triggers import deliver
from app.http.workflow_bodies import GraphQuery, RespondBody, ResumeBody, RunWorkflowBody
from app.http.workflow_definitions import (
    WorkflowBody,
    WorkflowVersionsPage,
    define_workflow,
    list_workflow_versions,
    remove_workflow,
)
from app.http.workflows import (
    MERMAID,
    CheckpointList,
    RequestList,
    WorkflowList,
    WorkflowView,
    get_graph,
    get_workflow,
    list_checkpoints,
    list_requests,
    list_workflows,
    respond_to_run,
    resume_run,
    run_workflow,
)
from app.jobs.batches import Batch
from app.keys.key import ApiKey, Scope
from domain.agent import AgentDefinition
from domain.workflow.graph import WorkflowGraph
from projections.approval_record import ApprovalRecord
from projections.comparison import Comparison
from projections.read.approvals import ApprovalPage
from projections.read.idempotency import KeyPage
from projections.read.jobs import Job, JobPage
from projections.read.runs import RunPage
from projections.read.schedules import SchedulePage
from projections.read.statistics import StatisticsReport
from projections.read.tools import ToolCallPage
from projections.read.tree import RunTree
from projections.run_record import RunRecord
from projections.schedule_record import ScheduleRecord
from projections.version_record import AgentVersionRecord, WorkflowVersionRecord

READ, RUN, OPERATE, ADMIN = Scope.READ, Scope.RUN, Scope.OPERATE, Scope.ADMIN
SIGNED = None
"""For those who know the secret of what is in the path: the handler sees to it."""
OPEN = None
"""For everybody: whoever asks whether the process lives has no key, and learns nothing else."""

# fmt: off
ROUTES: tuple[Route, ...] = (
    post("/api/agents/{name}/run", start_run, "Start a run and stream its events", RunAnswer, streams=True,
         later=RunRecord, keyed=True,
         scope=RUN, body=StartRunBody, errors=(404, 406, 409, 413, 415, 422, 429, 501, 502, 503, 504)),
    get("/api/agents", list_agents, "The agents that can be run", AgentList, scope=READ, errors=(503,)),
    get("/api/agents/{name}", get_agent, "One agent", AgentDefinition, scope=READ, errors=(404, 503)),
    put("/api/agents/{name}", define_agent, "Define an agent of the tenant's own, or define it anew",
        AgentVersionRecord, scope=OPERATE, body=AgentBody, conditional=True, creates=True,
        errors=(409, 412, 413, 415, 503)),
    delete("/api/agents/{name}", remove_agent, "Remove it; its runs go on and its versions stay",
           AgentVersionRecord, scope=OPERATE, conditional=True, errors=(404, 409, 412, 503)),
    get("/api/agents/{name}/versions", list_versions, "An agent's versions, newest first", VersionsPage,
        scope=READ, query=ListQuery, errors=(404, 409, 503)),

    post("/api/workflows/{name}/run", run_workflow, "Run a workflow and stream its events", RunAnswer,
         streams=True, later=RunRecord, keyed=True, scope=RUN, body=RunWorkflowBody,
         errors=(404, 406, 409, 413, 415, 422, 429, 501, 502, 503, 504)),
    get("/api/workflows", list_workflows, "The workflows that can be run", WorkflowList, scope=READ,
        errors=(503,)),
    get("/api/workflows/{name}", get_workflow, "One workflow", WorkflowView, scope=READ, errors=(404, 503)),
    put("/api/workflows/{name}", define_workflow, "Define a workflow of the tenant's own, or define it anew",
        WorkflowVersionRecord, scope=OPERATE, body=WorkflowBody, conditional=True, creates=True,
        errors=(409, 412, 413, 415, 503)),
    delete("/api/workflows/{name}", remove_workflow, "Remove it; its runs go on and its versions stay",
           WorkflowVersionRecord, scope=OPERATE, conditional=True, errors=(404, 409, 412, 503)),
    get("/api/workflows/{name}/versions", list_workflow_versions, "A workflow's versions, newest first",
        WorkflowVersionsPage, scope=READ, query=ListQuery, errors=(404, 409, 503)),
    get("/api/workflows/{name}/graph", get_graph, "A workflow as a graph, as JSON or as Mermaid text",
        WorkflowGraph, texts=(MERMAID,), scope=READ, query=GraphQuery, errors=(404, 406, 503)),
    get("/api/workflows/runs/{id}/checkpoints", list_checkpoints, "Where a run can be resumed from",
        CheckpointList, scope=READ, errors=(404, 409, 503)),
    post("/api/workflows/runs/{id}/resume", resume_run, "Go on from a checkpoint, in a new run", RunAnswer,
         streams=True, later=RunRecord, keyed=True, scope=RUN, body=ResumeBody, body_required=False,
         errors=(404, 406, 409, 413, 415, 422, 429, 501, 502, 503, 504)),
    get("/api/workflows/runs/{id}/requests", list_requests, "What a run waits for people to answer",
        RequestList, scope=READ, errors=(404, 503)),
    post("/api/workflows/runs/{id}/respond", respond_to_run, "Answer, and go on in a new run", RunAnswer,
         streams=True, later=RunRecord, keyed=True, scope=RUN, body=RespondBody,
         errors=(404, 406, 409, 413, 415, 422, 429, 501, 502, 503, 504)),

    get("/api/runs", list_runs, "Runs, newest first", RunPage, scope=READ, query=RunsQuery, errors=(503,)),
    get("/api/runs/{id}", get_run, "One run, as its events have it now", RunRecord, scope=READ,
        errors=(404, 503)),
    get("/api/runs/{id}/events", list_events, "A run's events from any place on, as JSON or as a stream",
        EventList, streams=True, scope=READ, query=EventsQuery, errors=(404, 406, 503)),
    get("/api/runs/{id}/tree", get_tree, "The tree of runs that a run belongs to", RunTree, scope=READ,
        query=TreeQuery, errors=(404, 503)),
    get("/api/runs/{id}/input", get_input, "What a run was started with", RunInput, scope=READ,
        errors=(404, 503)),
    get("/api/runs/{id}/tools", list_tool_calls, "A run's tool calls", ToolCallList, scope=READ,
        errors=(404, 503)),
    post("/api/runs/{id}/tools/{call}/resolve", resolve_call, "Say what came of a call that nobody knows of",
         Resolution, scope=OPERATE, body=ResolveBody, errors=(404, 409, 413, 415, 503)),
    get("/api/tools", list_calls, "Tool calls of all runs, newest first", ToolCallPage, scope=READ,
        query=ToolsQuery, errors=(503,)),
    post("/api/runs/{id}/replay", replay_run, "Run again what a run was given", RunRecord, status=201,
         scope=RUN, body=ReplayBody, body_required=False, errors=(404, 413, 415, 429, 503)),
    get("/api/runs/{id}/compare/{other}", compare_runs, "Two runs side by side", Comparison, scope=READ,
        errors=(404, 503)),
    post("/api/runs/{id}/cancel", cancel_run, "Ask a live run to stop, and wait for its end if wanted",
         CancelReceipt, accepted=CancelAccepted, scope=RUN, query=CancelQuery, body=CancelBody,
         body_required=False, errors=(404, 409, 413, 415, 503)),

    *OPENAI_ROUTES,

    get("/api/keys", list_keys, "The tenant's API keys, newest first", KeyList, scope=ADMIN, query=ListQuery,
        errors=(503,)),
    post("/api/keys", create_key, "Make an API key", NewKey, status=201, scope=ADMIN, body=CreateKeyBody,
         errors=(413, 415, 503)),
    delete("/api/keys/{id}", revoke_key, "Revoke an API key", ApiKey, scope=ADMIN, errors=(404, 503)),

    get("/api/idempotency", list_idempotency_keys, "Idempotency keys, newest first", KeyPage, scope=OPERATE,
        query=KeysQuery, errors=(503,)),
    post("/api/idempotency/{key}/release", release_key, "Let what a key was used for be done again",
         KeyDecided, scope=OPERATE, errors=(404, 409, 503)),
    post("/api/idempotency/{key}/complete", complete_key, "Say what came of what a key was used for",
         KeyDecided, scope=OPERATE, body=CompleteKeyBody, errors=(404, 409, 413, 415, 503)),

    get("/api/approvals", list_approvals, "What waits for a person's decision, newest first", ApprovalPage,
        scope=READ, query=ApprovalsQuery, errors=(503,)),
    get("/api/approvals/{id}", get_approval, "One approval; its id is that of the run that waits",
        ApprovalRecord, scope=READ, errors=(404, 503)),
    post("/api/approvals/{id}/decide", decide_approval, "Approve of its calls or reject them; a run goes on",
         ApprovalRecord, scope=OPERATE, body=DecideBody, errors=(404, 409, 413, 415, 503)),

    get("/api/jobs", list_jobs, "Queued runs, newest first", JobPage, scope=READ, query=JobsQuery,
        errors=(503,)),
    get("/api/jobs/{id}", get_job, "One queued run, and who works on it", Job, scope=READ, errors=(404, 503)),
    post("/api/batches", create_batch, "Queue a run for each item", Batch, scope=RUN, status=202,
         body=BatchBody, errors=(404, 413, 415, 429, 503)),
    get("/api/batches/{id}", get_batch, "A batch and its items", Batch, scope=READ, errors=(404, 503)),

    get("/api/schedules", list_schedules, "Schedules, by name", SchedulePage, scope=READ, query=ListQuery,
        errors=(503,)),
    post("/api/schedules", create_schedule, "Define a schedule", ScheduleRecord, scope=OPERATE, status=201,
         body=CreateScheduleBody, errors=(404, 409, 413, 415, 503)),
    get("/api/schedules/{name}", get_schedule, "One schedule", ScheduleRecord, scope=READ, errors=(404, 503)),
    put("/api/schedules/{name}", replace_schedule, "Define it anew", ScheduleRecord, scope=OPERATE,
        body=ReplaceScheduleBody, errors=(404, 413, 415, 503)),
    delete("/api/schedules/{name}", remove_schedule, "Remove it; its runs stay", ScheduleRecord,
           scope=OPERATE, errors=(404, 503)),
    post("/api/schedules/{name}/pause", pause_schedule, "Let its due times pass", ScheduleRecord,
         scope=OPERATE, errors=(404, 503)),
    post("/api/schedules/{name}/resume", resume_schedule, "Go on with its next due time", ScheduleRecord,
         scope=OPERATE, errors=(404, 503)),
    post("/api/schedules/{name}/trigger", trigger_schedule, "Queue a run of it now", RunRecord, scope=RUN,
         status=202, errors=(404, 429, 503)),

    post("/api/triggers/{name}", deliver, "Ask for a run in a signed request", RunRecord, scope=SIGNED,
         status=202, errors=(401, 408, 413, 415, 429, 503)),

    get("/api/stats", get_stats, "Runs, tokens and cost by model, agent and status", StatisticsReport,
        scope=READ, query=StatsQuery, errors=(503,)),
    get("/api/quotas", list_quotas, "What the tenant may use in a period, and what is left", QuotaList,
        scope=READ, errors=(503,)),
    get("/api/models/health", get_health, "Providers and their circuits on this host", ProviderList,
        scope=READ),
    get("/api/meta", get_meta, "What this host is", Meta, scope=READ),

    get("/health/live", is_live, "Whether the process answers", Health, scope=OPEN, at_root=True),
    get("/health/ready", is_ready, "Whether the store answers", Health, scope=OPEN, at_root=True,
        errors=(503,)),
    get("/metrics", get_metrics, "Prometheus series of this host", "text/plain", scope=READ, at_root=True,
        texts=("application/openmetrics-text",)),
    get("/openapi.json", get_openapi, "This description", "application/json", scope=READ, at_root=True),
)
# fmt: on
