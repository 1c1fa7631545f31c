"""A kill at every await: a run with three tools, killed at each fault point in turn and then recovered."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import get_args

from aiohttp import ClientSession

from app.faults import FaultPoint
from ops.chaos.client import Client
from ops.chaos.host import Host
from ops.chaos.oracle.kills import Rehearsal, Verdict, verdicts
from ops.chaos.plan import Plan, PlannedCall
from ops.chaos.trial import World, no_open_runs, scratch, stop, world
from ops.chaos.workload import Submission, Way

POINTS: tuple[str, ...] = get_args(FaultPoint)

_ORPHAN_S = 1.0
_SETTLING_S = 30.0
_LAST_BREATH_S = 0.5
_PERIODIC = {"heartbeat.before": 4, "heartbeat.after": 4, "lease.renew.before": 1, "lease.renew.after": 1}
"""Points that a host passes for ever, and how many times of them are rehearsed."""


def plan(number: int, *, pace_ms: int) -> Plan:
    """A read, a destructive and an external call, one after the other, then an answer."""
    calls = [
        PlannedCall(tool=tool, order=f"{number}-{tool}", for_ms=30) for tool in ("look", "refund", "notify")
    ]
    return Plan(number=number, steps=tuple((call,) for call in calls), words=5, pace_ms=pace_ms)


class Stage:
    """Hosts that die, and one that survives them and recovers what they leave behind."""

    def __init__(self, built: World, session: ClientSession) -> None:
        self._built = built
        self._survivor, *self._victims = built.hosts
        self._session = session
        self._plans = 0
        self.rehearsed: list[Rehearsal] = []
        self.submissions: dict[int, Submission] = {}

    async def rehearse(self, points: Iterable[str], nths: Sequence[int] = ()) -> None:
        """Each point's kills, one after the other; several points at a time, one for each victim."""
        ahead = iter(points)
        async with asyncio.TaskGroup() as tasks:
            for victim in self._victims:
                tasks.create_task(self._take(ahead, victim, nths))

    async def settled(self) -> None:
        """Wait until what was left behind is closed and gone on with."""
        async with asyncio.timeout(_SETTLING_S):
            await no_open_runs(self._built)

    async def _take(self, points: Iterator[str], victim: Host, nths: Sequence[int]) -> None:
        for point in points:
            for nth in nths or range(1, _PERIODIC.get(point, 1000) + 1):
                if not await self._kill(point, nth, victim):
                    break

    async def _kill(self, point: str, nth: int, victim: Host) -> bool:
        """Whether the host died there. If not, it does not pass there so often in one run."""
        self._plans += 1
        rehearsal = Rehearsal(point=point, nth=nth, plan=self._plans)
        await victim.start(fault=f"{point}:{nth}")
        ended = asyncio.create_task(victim.ended())
        watching = asyncio.create_task(self._submit(rehearsal, victim))
        await asyncio.wait(
            {ended} if point in _PERIODIC else {ended, watching}, return_when=asyncio.FIRST_COMPLETED
        )
        # A run may be seen to end a moment before its host does.
        died = bool((await asyncio.wait({ended}, timeout=_LAST_BREATH_S))[0])
        if died:
            self.rehearsed.append(rehearsal)
        else:
            await victim.stop()
        await self._survivor.bring_up()
        await asyncio.gather(ended, watching)
        return died

    async def _submit(self, rehearsal: Rehearsal, victim: Host) -> None:
        number, pace_ms = rehearsal.plan, 150 if rehearsal.point in _PERIODIC else 20
        submission = Submission(
            at_s=0, way=Way.STREAM, plan=plan(number, pace_ms=pace_ms), session_id=f"kill-{number}", host=0
        )
        self.submissions[number] = submission
        hosts = [victim, self._survivor]
        await Client(submission, hosts, self._session, self._built.received, asyncio.Event()).run()


async def run(points: Sequence[str] = POINTS, nths: Sequence[int] = (), *, victims: int = 2) -> list[Verdict]:
    """Rehearse every kill, or the nth ones at these points, and judge what came of each."""
    with scratch() as folder:
        return await _run(folder, points, nths, victims)


async def _run(folder: Path, points: Sequence[str], nths: Sequence[int], victims: int) -> list[Verdict]:
    async with world(1 + victims, folder, orphan_s=_ORPHAN_S) as built, ClientSession() as session:
        stage, survivor = Stage(built, session), built.hosts[0]
        # A lease has one holder at a time: nobody else is there when it is killed.
        leases = [point for point in points if point.startswith("lease.")]
        for point in leases:
            await stage.rehearse([point], nths)
            await survivor.stop()
        await survivor.bring_up()
        await stage.rehearse([point for point in points if point not in leases], nths)
        await stage.settled()
        await stop(built.hosts)
        evidence = await built.evidence(stage.submissions.values())
        in_order = sorted(stage.rehearsed, key=lambda each: (points.index(each.point), each.nth))
        return verdicts(in_order, evidence)
