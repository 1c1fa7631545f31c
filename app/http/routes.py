"""The whole API on one screen. The router and /openapi.json are both made from this table (HTTP-5)."""

from app.http.agents import AgentList, get_agent, list_agents, start_run
from app.http.bodies import CancelBody, EventsQuery, RunsQuery, StartRunBody, StatsQuery
from app.http.events import EventList, list_events
from app.http.host import Health, Meta, get_meta, get_metrics, get_openapi, is_live, is_ready
from app.http.models import ProviderList, get_health
from app.http.outcomes import RunAnswer
from app.http.route import Route, get, post
from app.http.runs import (
    CancelAccepted,
    RunInput,
    ToolCallList,
    cancel_run,
    get_input,
    get_run,
    list_runs,
    list_tool_calls,
)
from app.http.stats import get_stats
from domain.agent import AgentDefinition
from projections.read.runs import RunPage
from projections.read.statistics import StatisticsReport
from projections.run_record import RunRecord

# fmt: off
ROUTES: tuple[Route, ...] = (
    post("/api/agents/{name}/run", start_run, "Start a run and stream its events", RunAnswer, streams=True,
         body=StartRunBody, errors=(404, 406, 409, 413, 415, 422, 429, 501, 502, 503, 504)),
    get("/api/agents", list_agents, "The agents that can be run", AgentList),
    get("/api/agents/{name}", get_agent, "One agent", AgentDefinition, errors=(404,)),

    get("/api/runs", list_runs, "Runs, newest first", RunPage, query=RunsQuery, errors=(503,)),
    get("/api/runs/{id}", get_run, "One run, as its events have it now", RunRecord, errors=(404, 503)),
    get("/api/runs/{id}/events", list_events, "A run's events from any place on, as JSON or as a stream",
        EventList, streams=True, query=EventsQuery, errors=(404, 406, 503)),
    get("/api/runs/{id}/input", get_input, "What a run was started with", RunInput, errors=(404, 503)),
    get("/api/runs/{id}/tools", list_tool_calls, "A run's tool calls", ToolCallList, errors=(404, 503)),
    post("/api/runs/{id}/cancel", cancel_run, "Ask a live run to stop", CancelAccepted, status=202,
         body=CancelBody, body_required=False, errors=(404, 409, 413, 415, 503)),

    get("/api/stats", get_stats, "Runs, tokens and cost by model, agent and status", StatisticsReport,
        query=StatsQuery, errors=(503,)),
    get("/api/models/health", get_health, "Providers and their circuits on this host", ProviderList),
    get("/api/meta", get_meta, "What this host is", Meta),

    get("/health/live", is_live, "Whether the process answers", Health, at_root=True),
    get("/health/ready", is_ready, "Whether the store answers", Health, at_root=True, errors=(503,)),
    get("/metrics", get_metrics, "Prometheus series of this host", "text/plain", at_root=True),
    get("/openapi.json", get_openapi, "This description", "application/json", at_root=True),
)
# fmt: on
