"""What is wrong is refused with its file, its key and a reason, and all of it at once."""

import pytest

from tests.settings.files import Desk


def test_every_problem_is_told_with_file_key_and_reason(desk: Desk) -> None:
    problems = desk.problems("""
        [server]
        prot = 1
        port = "many"
        [store]
        strict = 1
        [agents.support]
        provider = "p"
        fallbacks = [{ provider = "x" }]
        [recording]
        deltas = "all"
    """)
    assert [str(problem).removeprefix(f"{desk.file}: ") for problem in problems] == [
        "server.prot: is unknown; did you mean 'port'?",
        "server.port: expected `int`, got `str`",
        "store.strict: expected `bool`, got `int`",
        "recording.deltas: expected one of recorded, live",
        "agents.support.model: is required",
        "agents.support.fallbacks.0.model: is required",
    ]


@pytest.mark.parametrize(
    ("text", "key", "reason"),
    [
        ("srever = {}", "srever", "is unknown; did you mean 'server'?"),
        ("zzz = 1", "zzz", "is unknown; known here: profile, dsn, server"),
        ("CircuitBreaker = {}", "CircuitBreaker", "is unknown; did you mean 'circuit_breaker'?"),
        ("server = 3", "server", "expected an object, got a number"),
        ("agents.a = true", "agents.a", "expected an object, got true or false"),
        ("[agents.a]\nfallbacks = {}", "agents.a.fallbacks", "expected a list, got an object"),
        ("[agents.a]\ntools = [1]", "agents.a.tools", "expected `str`, got `int`"),
        ("[agents.a]\nname = 'b'", "agents.a.name", "is unknown; the name is 'a' already"),
        ("[agents.'a b']", "agents.a b.name", "expected `str` matching regex"),
        ("[agents.a.options]\ntemperature = 3", "agents.a.options.temperature", "expected `float` <= 2.0"),
        ("[agents.a.options]\ntemperature = nan", "agents.a.options.temperature", "expected `float`"),
        ("[agents.a.provider_settings]\nx = [inf]", "agents.a.provider_settings", "nan and infinity"),
        ("[providers.p]\napi_key = 's'", "providers.p.api_key", "is unknown; did you mean 'api_key_env'?"),
        ("[server]\nport = 65536", "server.port", "expected `int` <= 65535"),
        ("[server]\nprefix = 'x/'", "server.prefix", "'x/' must start with a slash"),
        ("[server]\nhost = ''", "server.host", "expected `str` of length >= 1"),
        ("[server]\nsse_keepalive = '0s'", "server.sse_keepalive", "expected seconds > 0.0"),
        ("[store]\noutage_patience = nan", "store.outage_patience", "nan is not a duration"),
        ("[store]\noutage_patience = '20y'", "store.outage_patience", "'20y' is not a duration"),
        ("[turn]\ntimeout = '5000d'", "turn.timeout", "expected seconds <= 316224000.0"),
        ("[turn]\nmax_steps = 0", "turn.max_steps", "expected `int` >= 1"),
        ("[recording]\ndeltas = 'all'", "recording.deltas", "expected one of recorded, live"),
        ("[cancellation]\nscope = 'host'", "cancellation.scope", "expected one of cluster, process"),
        ("[pricing]\ncurrency = 'euro'", "pricing.currency", "expected `str` matching regex"),
        ("[agent_graph]\nmax_total_cost = 'NaN'", "agent_graph.max_total_cost", "nan and infinity"),
        ("[idempotency]\nmax_key_length = 0", "idempotency.max_key_length", "expected `int` >= 1"),
    ],
)
def test_a_wrong_value_is_refused(desk: Desk, text: str, key: str, reason: str) -> None:
    refused = desk.refusals(text)
    assert refused[key].startswith(reason)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[circuit_breaker]\nfailure_threshold = 0", "circuit_breaker.failure_threshold"),
        ("[circuit_breaker]\nbreak_duration = 0", "circuit_breaker.break_duration"),
    ],
)
def test_break_1_bounds(desk: Desk, text: str, key: str) -> None:
    """BREAK-1: a threshold of at least one, a positive break."""
    assert list(desk.refusals(text)) == [key]


@pytest.mark.parametrize("interval", ["heartbeat_interval", "scan_interval"])
@pytest.mark.parametrize("written", ["0.9ms", 0, "-1s", "49d17h2m48s", "1000d"])
def test_recon_1_intervals_are_from_a_millisecond_to_49_days(
    desk: Desk, interval: str, written: object
) -> None:
    """RECON-1: intervals 1 ms to 49.7 days."""
    text = f"[run_reconciliation]\norphan_threshold = '2000d'\n{interval} = {written!r}"
    assert list(desk.refusals(text)) == [f"run_reconciliation.{interval}"]


def test_recon_1_the_ends_of_the_intervals_are_allowed(desk: Desk) -> None:
    """RECON-1: intervals 1 ms to 49.7 days."""
    settings = desk.load("""
        [run_reconciliation]
        heartbeat_interval = "1ms"
        scan_interval = "49d17h2m47s"
        orphan_threshold = "1ms"
    """)
    assert settings.run_reconciliation.scan_interval == 4_294_967


def test_recon_1_an_orphan_is_silent_for_longer_than_a_heartbeat(desk: Desk) -> None:
    """RECON-1: orphan_threshold at least the interval."""
    refused = desk.refusals("[run_reconciliation]\nheartbeat_interval = '30s'\norphan_threshold = '29s'")
    assert refused == {
        "run_reconciliation.orphan_threshold": (
            "29 s is shorter than heartbeat_interval (30 s): healthy runs would be closed"
        )
    }


def test_single_1_a_lease_of_less_than_three_seconds_is_refused(desk: Desk) -> None:
    """SINGLE-1: lease_duration at least 3 s."""
    assert desk.load("[singleton_execution]\nlease_duration = 3").singleton_execution.lease_duration == 3
    assert list(desk.refusals("[singleton_execution]\nlease_duration = '2999ms'")) == [
        "singleton_execution.lease_duration"
    ]


def test_cont_1_continuation_needs_reconciliation(desk: Desk) -> None:
    """CONT-1: run_continuation needs reconciliation."""
    refused = desk.refusals("[run_continuation]\nenabled = true")
    assert refused["run_continuation.enabled"].startswith("needs run_reconciliation.enabled")
    both = "[run_continuation]\nenabled = true\n[run_reconciliation]\nenabled = true"
    assert desk.load(both).run_continuation.enabled


def test_wf_4_resuming_needs_checkpoints(desk: Desk) -> None:
    """WF-4: resume_interrupted_runs needs checkpointing, else start-up fails."""
    refused = desk.refusals("[workflows]\nresume_interrupted_runs = true\nenable_checkpointing = false")
    assert refused["workflows.resume_interrupted_runs"].startswith("needs enable_checkpointing")


@pytest.mark.parametrize("attempts", [-1, 101])
def test_wf_4_resume_attempts_are_from_0_to_100(desk: Desk, attempts: int) -> None:
    """WF-4: max_resume_attempts 0 to 100."""
    assert list(desk.refusals(f"[workflows]\nmax_resume_attempts = {attempts}")) == [
        "workflows.max_resume_attempts"
    ]


def test_budget_1_zero_or_less_is_a_way_to_have_no_limit(desk: Desk) -> None:
    """BUDGET-1: zero or negative removes a limit, so neither is refused."""
    graph = desk.load("""
        [agent_graph]
        max_depth = -1
        max_total_tokens = 0
        max_total_cost = "-1"
        max_total_runs = -5
        max_duration = "-1s"
    """).agent_graph
    assert (graph.max_depth, graph.max_total_runs, graph.max_duration) == (-1, -5, -1.0)
