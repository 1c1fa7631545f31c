"""What the clients of a trial do: decided by the seed before anything starts."""

import random
from enum import StrEnum

import msgspec

from ops.chaos.plan import Plan, PlannedCall, Trouble

# Models of the upstream: what a provider does before it gets better.
_PASSING = ("500", "503", "529", "reset", "reset-after-preamble", "cut-0", "empty", "429-after-1", "200-page")
_SEVERE = ("cut-2", "reports-late", "silent", "400")

_TOOLS = ("look", "note", "refund", "settle", "notify")
APPROVED = "charge"
"""It is asked for by keyless submissions without a conversation, and waits for the operator."""
_SESSIONS = 6


class Way(StrEnum):
    """How a client submits."""

    STREAM = "stream"
    JSON = "json"
    KEYED = "keyed"
    """With an Idempotency-Key: it may submit again when it does not know what became of it."""
    QUEUED = "queued"
    """It is told that it was accepted, and watches. With a key, it may submit again until then."""


_WAYS = (Way.STREAM, Way.STREAM, Way.JSON, Way.KEYED, Way.QUEUED)


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """One client: when it comes, what it asks for, and how steady it is."""

    at_s: float
    way: Way
    plan: Plan
    session_id: str | None = None
    key: str | None = None
    host: int
    """Which host it turns to first."""
    hangs_up_after: tuple[int, ...] = ()
    """After so many frames it goes on at another host, each time."""
    cancels_after_s: float | None = None
    priority: int = 0
    max_attempts: int = 1
    """The last two are of queued ones."""

    @property
    def number(self) -> int:
        return self.plan.number


def submissions(seed: int, seconds: float, hosts: int, *, per_second: float) -> tuple[Submission, ...]:
    """The same for the same arguments. They come at random moments, `per_second` on average."""
    chance = random.Random(f"{seed} workload")
    found: list[Submission] = []
    at_s = chance.expovariate(per_second)
    while at_s < seconds:
        found.append(_submission(chance, len(found) + 1, at_s, hosts))
        at_s += chance.expovariate(per_second)
    return tuple(found)


def _submission(chance: random.Random, number: int, at_s: float, hosts: int) -> Submission:
    way = chance.choice(_WAYS)
    watches = way in (Way.STREAM, Way.QUEUED)
    hang_ups = chance.choice((0, 0, 1, 2)) if watches else 0
    own = f"session-{chance.randrange(_SESSIONS)}-{number}"
    session_id = own if chance.random() < 0.5 else _shared(chance)
    is_keyed = way is Way.KEYED or (way is Way.QUEUED and chance.random() < 0.5)
    waits = session_id is None and not is_keyed and chance.random() < 0.8
    return Submission(
        at_s=at_s,
        way=way,
        plan=_plan(chance, number, waits),
        session_id=session_id,
        key=f"key-{number}" if is_keyed else None,
        host=chance.randrange(hosts),
        hangs_up_after=tuple(chance.randint(1, 8) for _ in range(hang_ups)),
        cancels_after_s=_cancels_after_s(chance, waits),
        priority=chance.choice((0, 0, 5)),
        max_attempts=chance.choice((1, 1, 2)),
    )


def _cancels_after_s(chance: random.Random, waits: bool) -> float | None:
    """More often, and later, where the run comes to wait for a person."""
    often, latest_s = (0.4, 4.0) if waits else (0.12, 2.0)
    return chance.uniform(0.05, latest_s) if chance.random() < often else None


def _shared(chance: random.Random) -> str | None:
    """A conversation that several runs continue, or none."""
    return f"shared-{chance.randrange(_SESSIONS)}" if chance.random() < 0.6 else None


def _plan(chance: random.Random, number: int, waits: bool) -> Plan:
    steps = tuple(_step(chance, f"{number}-{step}") for step in range(chance.choice((0, 1, 1, 2, 3))))
    if waits:
        steps += ((PlannedCall(tool=APPROVED, order=f"{number}-approved", for_ms=chance.choice((0, 150))),),)
    troubles: list[Trouble] = []
    if chance.random() < 0.25:
        kinds = _PASSING if chance.random() < 0.75 else _SEVERE
        troubles.append(Trouble(step=chance.randint(1, len(steps) + 1), kind=chance.choice(kinds)))
    return Plan(
        number=number,
        steps=steps,
        words=chance.randint(3, 25),
        pace_ms=chance.choice((0, 10, 40, 120)),
        troubles=tuple(troubles),
    )


def _step(chance: random.Random, order: str) -> tuple[PlannedCall, ...]:
    calls = [
        PlannedCall(
            tool=chance.choice(_TOOLS),
            order=f"{order}-{place}",
            for_ms=chance.choice((0, 20, 150, 400, 900)),
            fails=chance.random() < 0.08,
        )
        for place in range(chance.choice((1, 1, 2)))
    ]
    if chance.random() < 0.1:
        calls.append(calls[0])  # an equal call: one of its own all the same
    return tuple(calls)
