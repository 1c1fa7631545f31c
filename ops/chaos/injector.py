"""Does to a trial what its schedule says, and puts it right again."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Sequence

import asyncpg

from app.db.errors import DatabaseError
from ops.chaos.database import Database
from ops.chaos.host import Host
from ops.chaos.schedule import Fault, FaultKind
from ops.chaos.wall import Wall

log = logging.getLogger(__name__)

_DELAY_S = 0.15


class Injector:
    """`injected` counts what was done."""

    def __init__(self, hosts: Sequence[Host], database: Database, wall: Wall, seed: int) -> None:
        self._hosts = hosts
        self._database = database
        self._wall = wall
        self._chance = random.Random(f"{seed} injector")
        self.injected: Counter[FaultKind] = Counter()

    async def follow(self, schedule: Sequence[Fault]) -> None:
        """Return when the last fault is over and everything is up again."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.TaskGroup() as tasks:
            for fault in schedule:
                await asyncio.sleep(began + fault.at_s - loop.time())
                log.info("%6.1f s: %s%s", loop.time() - began, fault.kind, _named(fault))
                if self._can(fault):
                    tasks.create_task(self._inject(fault))
                    self.injected[fault.kind] += 1

    def _can(self, fault: Fault) -> bool:
        """A machine without a C compiler has hosts whose time of day cannot be set."""
        return fault.kind is not FaultKind.CLOCK_JUMP or all(host.clock.can_jump for host in self._hosts)

    async def _inject(self, fault: Fault) -> None:
        if fault.host is None:
            await self._to_what_is_shared(fault)
        else:
            await self._to_host(self._hosts[fault.host], fault)

    async def _to_host(self, host: Host, fault: Fault) -> None:
        match fault.kind:
            case FaultKind.CUT_HOST:
                host.link.cut()
            case FaultKind.LOSE_REPLY:
                host.link.lose_reply()
            case FaultKind.LOSE_REQUEST:
                host.link.lose_request()
            case FaultKind.CLOCK_JUMP:
                host.clock.set(fault.off_by_s)
                await asyncio.sleep(fault.for_s)
                host.clock.set(0)
            case kind:
                begin, put_right = _LASTING[kind]
                await begin(host)
                await asyncio.sleep(fault.for_s)
                await put_right(host)

    async def _to_what_is_shared(self, fault: Fault) -> None:
        try:
            match fault.kind:
                case FaultKind.RESTART_POSTGRES:
                    await self._database.restart()
                case FaultKind.CRASH_POSTGRES:
                    await self._database.crash()
                case FaultKind.CRASH_BACKEND:
                    await self._database.crash_backend(self._chance)
                case FaultKind.HOLD_COMMITS:
                    await self._database.hold_appends(fault.for_s)
                case FaultKind.PROVIDER_DOWN:
                    self._wall.down = True
                    await asyncio.sleep(fault.for_s)
                    self._wall.down = False
                case kind:
                    raise ValueError(f"{kind} is a trouble of one host")
        except (DatabaseError, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            log.info("the fault met another one: %s", error)


async def _stop(host: Host) -> None:
    await host.stop()


async def _freeze(host: Host) -> None:
    host.freeze()


async def _thaw(host: Host) -> None:
    host.thaw()


async def _cut_off(host: Host) -> None:
    host.link.hold()


async def _connect_again(host: Host) -> None:
    host.link.let_go()


async def _slow_down(host: Host) -> None:
    host.link.delay_s = _DELAY_S


async def _speed_up(host: Host) -> None:
    host.link.delay_s = 0.0


_LASTING = {
    FaultKind.KILL_HOST: (Host.kill, Host.bring_up),
    FaultKind.STOP_HOST: (_stop, Host.bring_up),
    FaultKind.FREEZE_HOST: (_freeze, _thaw),
    FaultKind.PARTITION_HOST: (_cut_off, _connect_again),
    FaultKind.SLOW_HOST: (_slow_down, _speed_up),
}
"""How each begins and how it is put right."""


def _named(fault: Fault) -> str:
    where = "" if fault.host is None else f", host {fault.host}"
    by = f", by {fault.off_by_s:+g} s" if fault.off_by_s else ""
    return f"{where}{by}, for {fault.for_s:.1f} s" if fault.for_s else where
