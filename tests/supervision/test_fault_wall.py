"""The fault wall: every fault of the upstream, on every wire, through the run endpoint.

For each, four runs: watched and waited for, with one link and with another one behind it. What the upstream
counted is held against what the run's events say; nothing is believed. All runs of a wire are made at once.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import pytest_asyncio

from app.models.accounts import Account
from domain.agent import AgentDefinition, Link
from tests.conftest import TEMPLATE, cloned
from tests.http.client import STREAM
from tests.supervision.faults import (
    COUNTED,
    ERROR_TYPES,
    FAULTS,
    NO_FAULTS,
    RETRIED,
    Answers,
    Fails,
    Fault,
    Outcome,
    faults_of,
)
from tests.supervision.walls import FAMILIES, Wall, open_wall, provider
from tests.upstream.registry import BEHAVIOURS
from tests.upstream.server import Upstream

AT_ONCE = 16
"""So few that a limit of less than a second is never over before the request has arrived."""
pytestmark = pytest.mark.timeout(180)  # the first test waits for all runs of the module
GOOD = Answers("Hello there you.")


@dataclass(frozen=True)
class Case:
    """One run. `watched`: its answer is streamed; `backed`: a link that answers stands behind the fault."""

    family: str
    fault: str
    watched: bool
    backed: bool

    @property
    def name(self) -> str:
        how = "watched" if self.watched else "waited-for"
        return f"{self.family}.{self.fault}.{how}.{'backed' if self.backed else 'alone'}"

    @property
    def good(self) -> str:
        return f"{self.name}.good"

    @property
    def links(self) -> tuple[Link, ...]:
        faulty, good = Link(provider=self.name, model=self.fault), Link(provider=self.good, model="text")
        return (faulty, good) if self.backed else (faulty,)

    def providers(self, upstream: Upstream) -> dict[str, Any]:
        limits = {"timeouts": self.meant.limits} if self.meant.limits else {}
        faulty = provider(self.family, upstream, self.name, **limits)
        return {self.name: faulty, self.good: provider(self.family, upstream, self.good)}

    @property
    def agent(self) -> AgentDefinition:
        first, *rest = self.links
        return AgentDefinition(
            name=self.name, provider=first.provider, model=first.model, fallbacks=tuple(rest)
        )

    @property
    def meant(self) -> Fault:
        return faults_of(self.family)[self.fault]

    @property
    def streamed(self) -> bool:
        """Whether the call to the faulty link is streamed: to be watched, or to be told from a silent one."""
        return self.watched or self.backed

    @property
    def outcome(self) -> Outcome | None:
        """What the faulty link comes to; None: the upstream cannot do that."""
        seen = self.meant.streamed if self.streamed else self.meant.whole
        return seen.unseen() if isinstance(seen, Fails) and not self.watched else seen


@dataclass(frozen=True)
class Seen:
    """What a case came to, on both sides."""

    status: int
    events: list[dict[str, Any]] = field(repr=False)
    attempts: int
    good_attempts: int
    streamed: set[bool]
    counted: int

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [event["data"] for event in self.events if event["type"] == kind]

    @property
    def deltas(self) -> str:
        return "".join(delta["text"] for delta in self.of("TextDelta"))


@dataclass(frozen=True)
class Expected:
    """What the rules make of one outcome of the faulty link."""

    attempts: int
    good_attempts: int
    answer: str | None
    error_type: str | None
    deltas: str

    @classmethod
    def of(cls, case: Case, outcome: Outcome) -> "Expected":
        if isinstance(outcome, Answers):
            return cls.answered(case, outcome.text, attempts=1, good_attempts=0)
        failed = outcome.failure_class
        if outcome.delivered:
            error_type = ERROR_TYPES.get(failed, "stream_error")
            return cls(1, 0, None, error_type, outcome.delivered)
        attempts = 2 if failed in RETRIED else 1
        if failed in ERROR_TYPES or not case.backed:
            return cls(attempts, 0, None, ERROR_TYPES.get(failed, "provider_unavailable"), "")
        return cls.answered(case, GOOD.text, attempts=attempts, good_attempts=1)

    @classmethod
    def answered(cls, case: Case, text: str, *, attempts: int, good_attempts: int) -> "Expected":
        return cls(attempts, good_attempts, text, None, text if case.watched else "")


def cases(family: str) -> list[Case]:
    every = [
        Case(family, fault, watched, backed)
        for fault in faults_of(family)
        for watched in (True, False)
        for backed in (True, False)
    ]
    return [case for case in every if case.outcome is not None]


CASES = {case.name: case for family in FAMILIES for case in cases(family)}


async def play(wall: Wall, case: Case) -> Seen:
    if case.watched:
        path, body = f"/tracon/api/agents/{case.name}/run", {"message": "Hello?"}
        async with wall.client.session.post(path, json=body, headers=STREAM) as response:
            await response.read()
            status, run_id = response.status, response.headers["X-Run-Id"]
    else:
        answer = await wall.client.run(case.name, "Hello?")
        status, run_id = answer.status, answer.headers["X-Run-Id"]
    attempts = wall.attempts(case.name, case.fault)
    return Seen(
        status=status,
        events=await wall.client.events(run_id),
        attempts=len(attempts),
        good_attempts=len(wall.attempts(case.good, "text")),
        streamed={attempt.streamed for attempt in attempts} if case.fault != "200-json-whole" else set(),
        counted=wall.host.services.circuits.health(Account(case.name)).consecutive_failures,
    )


async def play_all(wall: Wall) -> dict[str, Seen]:
    turnstile = asyncio.Semaphore(AT_ONCE)

    async def one(case: Case) -> Seen:
        async with turnstile:
            return await play(wall, case)

    seen = await asyncio.gather(*map(one, CASES.values()))
    assert wall.upstream.log.unfinished == 0, "every attempt is over when its run is"
    return dict(zip(CASES, seen, strict=True))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def played(postgres: Any, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[dict[str, Seen]]:
    """Every case, played on one host against one upstream."""
    async for dsn in cloned(postgres, TEMPLATE):
        async with Upstream() as upstream:
            providers = {k: v for case in CASES.values() for k, v in case.providers(upstream).items()}
            async with open_wall(
                dsn,
                tmp_path_factory.mktemp("wall"),
                upstream,
                providers=providers,
                agents=tuple(case.agent for case in CASES.values()),
                circuit_breaker={"failure_threshold": 1000},
            ) as wall:
                yield await play_all(wall)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_does_what_the_rules_say(family: str, fault: str, played: dict[str, Seen]) -> None:
    """CLASS, CHAIN-1, 2, 3, 7, 10, 11, BREAK-1; C1, C2, C4, C6, C8, C10, C11, C12, C15, C16, C21."""
    of_fault = [case for case in CASES.values() if (case.family, case.fault) == (family, fault)]
    assert of_fault
    for case in of_fault:
        seen, outcome = played[case.name], case.outcome
        assert outcome is not None
        expected = Expected.of(case, outcome)
        check_attempts(case, seen, expected)
        check_failures(case, seen, outcome)
        check_end(case, seen, expected)


def check_attempts(case: Case, seen: Seen, expected: Expected) -> None:
    """The upstream's own count is what the rules allow, and what the run's events say."""
    assert (seen.attempts, seen.good_attempts) == (expected.attempts, expected.good_attempts)
    told = [call["provider"] for call in seen.of("ModelCallStarted")]
    assert told == [case.name] * seen.attempts + [case.good] * seen.good_attempts
    assert seen.streamed <= {case.streamed}
    retries = [retry["provider"] for retry in seen.of("ModelCallRetried")]
    assert retries == [case.name] * (expected.attempts - 1)


def check_failures(case: Case, seen: Seen, outcome: Outcome) -> None:
    """Each failure has its class on record, and counts for the circuit by its class."""
    failed = [failure["failure_class"] for failure in seen.of("ModelCallFailed")]
    if isinstance(outcome, Answers):
        assert (failed, seen.counted) == ([], 0)
        return
    assert failed == [outcome.failure_class] * seen.attempts
    assert seen.counted == (seen.attempts if outcome.failure_class in COUNTED else 0)


def check_end(case: Case, seen: Seen, expected: Expected) -> None:
    """The run's end, the HTTP answer, and what a watcher was told."""
    assert seen.deltas == expected.deltas
    primary, left = case.links[0], {"provider": case.name, "model": case.fault}
    switches = [(one["primary"], one["fallback"]["provider"]) for one in seen.of("ModelFallbackUsed")]
    assert (
        switches
        == [({"provider": primary.provider, "model": primary.model}, case.good)] * expected.good_attempts
    )
    if expected.answer is not None:
        (end,) = seen.of("RunCompleted")
        assert (end["answer"], seen.status) == (expected.answer, 200)
        assert end["fallbacks_taken"] == [left] * expected.good_attempts
        return
    (end,) = seen.of("RunFailed")
    assert end["error_type"] == expected.error_type
    assert case.name in end["error"]
    assert end["fallbacks_taken"] == ([left] if case.backed else [])
    assert not end["refunded"]
    assert seen.status == (200 if case.watched else STATUS[end["error_type"]])


STATUS = {
    "provider_unavailable": 503,
    "provider_auth": 502,
    "provider_rejected": 422,
    "content_filtered": 422,
    "stream_error": 502,
}


def test_every_fault_of_the_upstream_is_on_the_wall() -> None:
    """One that is added is said what it means, or why it is none."""
    shipped = {name for name, does in BEHAVIOURS.items() if does.__module__.startswith("tests.upstream")}
    assert {*FAULTS, *NO_FAULTS} == shipped
