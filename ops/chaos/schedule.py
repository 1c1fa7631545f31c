"""Which faults a trial meets, and when: decided by the seed before anything starts."""

import random
from enum import StrEnum

import msgspec


class FaultKind(StrEnum):
    """What goes wrong. Those of a host name it."""

    KILL_HOST = "host killed"
    FREEZE_HOST = "host frozen past the orphan threshold"
    STOP_HOST = "host stopped and started again"
    PARTITION_HOST = "host cut off past the orphan threshold"
    CUT_HOST = "host's database connections cut"
    SLOW_HOST = "host's database slow"
    LOSE_REPLY = "database's reply to a host lost"
    LOSE_REQUEST = "host's request to the database lost"
    CLOCK_JUMP = "host's time of day set wrong and right again"
    RESTART_POSTGRES = "Postgres restarted"
    CRASH_POSTGRES = "Postgres killed"
    CRASH_BACKEND = "Postgres backend killed"
    HOLD_COMMITS = "appends held up"
    PROVIDER_DOWN = "provider down"


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """It begins at `at_s` and lasts for `for_s`; then it is put right."""

    at_s: float
    kind: FaultKind
    host: int | None = None
    for_s: float = 0.0
    off_by_s: float = 0.0
    """How wrong a host's time of day is."""


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """Of the hosts under test, as far as a fault has to know them."""

    orphan_s: float
    recovery_s: float = 2.5
    """What a host may take to be there again."""


_WEIGHTS = {
    FaultKind.KILL_HOST: 6,
    FaultKind.FREEZE_HOST: 4,
    FaultKind.STOP_HOST: 2,
    FaultKind.PARTITION_HOST: 3,
    FaultKind.CUT_HOST: 4,
    FaultKind.SLOW_HOST: 3,
    FaultKind.LOSE_REPLY: 4,
    FaultKind.LOSE_REQUEST: 2,
    FaultKind.CLOCK_JUMP: 3,
    FaultKind.RESTART_POSTGRES: 2,
    FaultKind.CRASH_POSTGRES: 2,
    FaultKind.CRASH_BACKEND: 2,
    FaultKind.HOLD_COMMITS: 3,
    FaultKind.PROVIDER_DOWN: 2,
}
_DISABLING = frozenset(
    {FaultKind.KILL_HOST, FaultKind.FREEZE_HOST, FaultKind.STOP_HOST, FaultKind.PARTITION_HOST}
)
_OF_A_HOST = _DISABLING | {
    FaultKind.CUT_HOST,
    FaultKind.SLOW_HOST,
    FaultKind.LOSE_REPLY,
    FaultKind.LOSE_REQUEST,
    FaultKind.CLOCK_JUMP,
}
_JUMPS_S = (-86400.0, -600.0, -3.0, 3.0, 40.0, 86400.0)
_POSTGRES_REST_S = 5.0
_WARM_UP_S = 2.0


def faults(
    seed: int, seconds: float, hosts: int, thresholds: Thresholds, *, gap_s: float
) -> tuple[Fault, ...]:
    """The same for the same arguments: about one every `gap_s`, the last of them over by `seconds`.

    A host has one trouble at a time, and one host at least has none that disables it.
    """
    chance = random.Random(f"{seed} faults")
    book = _Book(hosts)
    found: list[Fault] = []
    at_s = _WARM_UP_S
    while (at_s := at_s + chance.expovariate(1 / gap_s)) < seconds:
        kind = chance.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        host = chance.randrange(hosts) if kind in _OF_A_HOST else None
        off_by_s = chance.choice(_JUMPS_S) if kind is FaultKind.CLOCK_JUMP else 0.0
        for_s = _lasts_s(chance, kind, thresholds)
        fault = Fault(at_s=at_s, kind=kind, host=host, for_s=for_s, off_by_s=off_by_s)
        if at_s + fault.for_s < seconds and book.has_room_for(fault):
            book.enter(fault, thresholds.recovery_s)
            found.append(fault)
    return tuple(found)


class _Book:
    """Who is in trouble until when."""

    def __init__(self, hosts: int) -> None:
        self._busy_until = [0.0] * hosts
        self._disabled_until = [0.0] * hosts
        self._postgres_until = 0.0

    def has_room_for(self, fault: Fault) -> bool:
        if fault.host is None:
            return fault.kind is FaultKind.PROVIDER_DOWN or fault.at_s >= self._postgres_until
        if self._busy_until[fault.host] > fault.at_s:
            return False
        able = sum(until <= fault.at_s for until in self._disabled_until)
        return fault.kind not in _DISABLING or able > 1

    def enter(self, fault: Fault, recovery_s: float) -> None:
        until = fault.at_s + fault.for_s
        if fault.host is None:
            if fault.kind is not FaultKind.PROVIDER_DOWN:
                self._postgres_until = until + _POSTGRES_REST_S
            return
        if fault.kind in _DISABLING:
            until += recovery_s
            self._disabled_until[fault.host] = until
        self._busy_until[fault.host] = until


def _lasts_s(chance: random.Random, kind: FaultKind, thresholds: Thresholds) -> float:
    match kind:
        case FaultKind.KILL_HOST | FaultKind.STOP_HOST:
            return chance.uniform(0.0, 1.5)
        case FaultKind.FREEZE_HOST | FaultKind.PARTITION_HOST:
            # Some wake up in the middle of being given up for dead.
            return thresholds.orphan_s + chance.uniform(-0.3, 2.0)
        case FaultKind.SLOW_HOST | FaultKind.CLOCK_JUMP:
            return chance.uniform(0.5, 3.0)
        case FaultKind.HOLD_COMMITS:
            return chance.uniform(0.2, 1.5)
        case FaultKind.PROVIDER_DOWN:
            return chance.uniform(0.5, 2.0)
        case _:
            return 0.0
