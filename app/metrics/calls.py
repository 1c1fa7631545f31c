"""Calls to providers and to tools, and what stands before them."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from app.metrics.series import Series
from domain.messages import Usage

_CALL_SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class CallSeries(Series):
    """Calls to providers and to tools, and what stands before them."""

    def __init__(self, registry: CollectorRegistry) -> None:
        super().__init__(registry)
        self.model_calls = Counter(
            "tracon_model_calls_total",
            "Calls made to a provider, by how they ended.",
            ["provider", "model", "outcome"],
            registry=registry,
        )
        self.model_call_seconds = Histogram(
            "tracon_model_call_seconds",
            "Time of one call to a provider, its whole stream included.",
            ["provider", "model"],
            buckets=_CALL_SECONDS,
            registry=registry,
        )
        self.tokens = Counter(
            "tracon_tokens_total",
            "Tokens that providers reported. Cached input is in the input, reasoning in the output.",
            ["provider", "model", "direction"],
            registry=registry,
        )
        self.tool_calls = Counter(
            "tracon_tool_calls_total",
            "Tool calls, by how they ended.",
            ["tool", "outcome"],
            registry=registry,
        )
        self.tool_call_seconds = Histogram(
            "tracon_tool_call_seconds",
            "Time of one tool call, its retries included.",
            ["tool"],
            buckets=_CALL_SECONDS,
            registry=registry,
        )
        self.circuit_open = Gauge(
            "tracon_circuit_open",
            "1 while this host's circuit of the provider is open or half open.",
            ["provider"],
            registry=registry,
        )
        self.tenant_circuits_open = Gauge(
            "tracon_tenant_circuits_open",
            "How many tenants with a key of their own have an open or half open circuit at the provider.",
            ["provider"],
            registry=registry,
        )
        self.provider_up = Gauge(
            "tracon_provider_up",
            "1 if the provider answered when this host last looked (`health.background_interval`).",
            ["provider"],
            registry=registry,
        )
        self.circuit_opened = Counter(
            "tracon_circuit_opened_total",
            "How often a circuit of the provider opened on this host, those of tenants' own keys included.",
            ["provider"],
            registry=registry,
        )
        self.circuit_refused = Counter(
            "tracon_circuit_refused_total",
            "Calls that were not made because a circuit of the provider was open.",
            ["provider"],
            registry=registry,
        )
        self.model_places_in_use = Gauge(
            "tracon_model_places_in_use",
            "Calls to the provider that hold a place, where places are limited.",
            ["provider"],
            registry=registry,
        )
        self.model_calls_waiting = Gauge(
            "tracon_model_calls_waiting",
            "Calls that wait for a place at the provider.",
            ["provider"],
            registry=registry,
        )
        self.fallbacks = Counter(
            "tracon_model_fallbacks_total",
            "Switches from one link of a chain to the next.",
            ["primary", "fallback"],
            registry=registry,
        )
        self.budget_waiting = Gauge(
            "tracon_budget_waiting",
            "Model calls that wait for others of their tree: those may use up what is left of its budget.",
            registry=registry,
        )
        self.budget_refusals = Counter(
            "tracon_budget_refusals_total",
            "Model turns, tool calls, nodes and child runs that a limit of their tree kept from starting.",
            ["limit"],  # depth | total_runs | total_tokens | total_cost | duration
            registry=registry,
        )
        self.quota_refusals = Counter(
            "tracon_quota_refusals_total",
            "Submissions, and pieces of work of live runs, that a used-up quota kept from starting.",
            ["quota", "what"],  # names from the settings; submission | work
            registry=registry,
        )
        self.model_retries = Counter(
            "tracon_model_retries_total",
            "Calls made once more to the same link after a failure.",
            ["provider", "model"],
            registry=registry,
        )
        self.cached_replies = Counter(
            "tracon_cached_replies_total",
            "Replies given again in place of a call.",
            ["provider", "model"],
            registry=registry,
        )

    def count_reply(self, provider: str, model: str, usage: Usage) -> None:
        """A call that came back, and what it used."""
        self.model_calls.labels(provider, model, "replied").inc()
        for direction, amount in (
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
            ("cached_input", usage.cached_input_tokens),
            ("reasoning", usage.reasoning_tokens),
        ):
            if amount:
                self.tokens.labels(provider, model, direction).inc(amount)
