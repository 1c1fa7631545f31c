"""What the gate around a model call costs: circuit, place, circuit again, cache.

    python -m ops.bench gate

Each figure is the processor time of a call through the gate less that of the same call made directly,
measured in turns in one process. The provider answers at once and nothing is waited for, so nothing but the
gate is in it, and whatever else the machine does is not. The last table shows what a provider without a limit
pays for concurrency: how many of its functions run, and what memory the call takes.
"""

import asyncio
import sys
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import thread_time
from types import FrameType

from app.metrics import Metrics
from app.models.accounts import Account
from app.models.circuits import Circuits
from app.models.classifiers import Classifiers
from app.models.gate import Gate
from app.models.places import Places
from app.models.port import ModelReply, ModelRequest
from app.models.response_cache import ResponseCache, cache_key
from app.settings import CircuitBreakerSettings, ResponseCacheSettings
from domain.events import FinishReason
from domain.messages import AssistantMessage, Message, UserMessage
from ops.bench.report import interleaved, spread, table

ROUNDS = 15
CALLS = 2000
P = Account("primary")
REPLY = ModelReply(message=AssistantMessage(content="Hello."), finish=FinishReason.STOP)
CONCURRENCY = ("app/models/places.py", "asyncio/locks.py")

Call = Callable[[], Awaitable[ModelReply]]


async def answer() -> ModelReply:
    return REPLY


def gate_of(limit: int | None = None) -> Gate:
    """A gate as a host has it."""
    metrics = Metrics()
    places = None if limit is None else Places(limit, metrics)
    circuits = Circuits(CircuitBreakerSettings(), metrics, [P])
    cache = ResponseCache(ResponseCacheSettings())
    return Gate(circuits, Classifiers(), places, cache, metrics.model_calls_live)


def conversation(messages: int) -> ModelRequest:
    turns: tuple[Message, ...] = tuple(
        message
        for number in range(messages // 2)
        for message in (
            UserMessage(content=f"Where is order {number}? " + "It was paid for last week. " * 8),
            AssistantMessage(content=f"Order {number} is on its way. " + "It is due on Tuesday. " * 8),
        )
    )
    return ModelRequest(model="small", messages=turns, instructions="You work for a shop. Answer briefly.")


def run() -> None:
    """Measure and print the tables."""
    rows = [
        ("circuit (no limit of concurrency, no cache)", through(gate_of())),
        ("circuit and place", through(gate_of(8))),
        ("circuit, place and a cache without the reply", missing(gate_of(8))),
        ("circuit, place and a cache with the reply", hitting(gate_of(8))),
    ]
    figures = interleaved(ROUNDS, *(lambda call=call: timed(call) for _, call in rows))
    keys = [keyed(conversation(messages)) for messages in (2, 20, 200)]
    table(
        f"The gate: processor time per call, median of {ROUNDS} rounds of {CALLS} calls (least..most)",
        ("what a call passes", "µs"),
        [
            *((name, spread(taken, ".2f")) for (name, _), taken in zip(rows, figures, strict=True)),
            *(
                (f"a cache key, made of {messages} messages", f"{taken:.2f}")
                for messages, taken in zip((2, 20, 200), keys, strict=True)
            ),
        ],
        "target: under 20 µs per call. Only agents with cache_replies make keys, and look for a reply.",
    )
    table(
        "What a call pays for concurrency",
        ("limit of the provider", "functions that ran for it", "most bytes held by the call"),
        [(name, *paid(gate)) for name, gate in (("none", gate_of()), ("8 calls at once", gate_of(8)))],
        f"functions of {', '.join(CONCURRENCY)}",
    )


def through(gate: Gate) -> Call:
    return lambda: gate.call(P, answer)


def hitting(gate: Gate) -> Call:
    return lambda: gate.call(P, answer, cache_key=b"key")


def missing(gate: Gate) -> Call:
    numbers = iter(range(sys.maxsize))
    return lambda: gate.call(P, answer, cache_key=next(numbers).to_bytes(8))


def timed(call: Call) -> float:
    """Microseconds that one call takes beside the provider's own answer."""
    return asyncio.run(_more(call)) * 1e6


async def _more(call: Call) -> float:
    with_gate, without = await _taken_s(call), await _taken_s(answer)
    return (with_gate - without) / CALLS


async def _taken_s(call: Call) -> float:
    await call()
    began = thread_time()
    for _ in range(CALLS):
        await call()
    return thread_time() - began


def keyed(request: ModelRequest) -> float:
    """Microseconds to make one key."""
    began = thread_time()
    for _ in range(CALLS):
        cache_key("acme", P.provider, request)
    return (thread_time() - began) / CALLS * 1e6


def paid(gate: Gate) -> tuple[str, str]:
    """How many functions of concurrency one call ran, and how much memory it held at most."""
    return str(asyncio.run(_entered(gate))), f"{asyncio.run(_held(gate)):,}"


async def _entered(gate: Gate) -> int:
    await gate.call(P, answer)
    entered = 0

    def note(frame: FrameType, event: str, _: object) -> None:
        nonlocal entered
        entered += event == "call" and Path(frame.f_code.co_filename).as_posix().endswith(CONCURRENCY)

    sys.setprofile(note)
    try:
        await gate.call(P, answer)
    finally:
        sys.setprofile(None)
    return entered


async def _held(gate: Gate) -> int:
    await gate.call(P, answer)
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        await gate.call(P, answer)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return peak - before
