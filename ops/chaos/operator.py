"""Who looks after a trial's runs: finds out what came of uncertain calls, says so, and decides approvals."""

import asyncio
import random
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec
from aiohttp import ClientSession, ClientTimeout

from ops.chaos.evidence import Body, read_bodies
from ops.chaos.host import Host
from ops.chaos.reach import BROKEN, Reach
from ops.chaos.received import Decided, Received, Resolved

_TIMEOUT = ClientTimeout(total=5, sock_connect=2)
_LOOK_S = 0.5
_SHARE = 0.75
"""Of what is uncertain, so much is looked into; the rest stays as it is."""
_APPROVED, _REJECTED = 0.6, 0.2
"""Of what waits for an approval; nobody decides of the rest, which expires."""


class Operator:
    """Looks in the tools' own files, and says nothing while a body may still come to its end."""

    def __init__(self, hosts: Sequence[Host], session: ClientSession, received: Received, seed: int) -> None:
        self._hosts = hosts
        self._reach = Reach(hosts, session, received)
        self._received = received
        self._seed = seed
        self._unanswered: dict[tuple[UUID, str], Resolved] = {}
        """Told, and not known to be on record, or acted on: it is told again."""

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(_LOOK_S)

    async def look(self) -> None:
        """See to everything that is uncertain now, as far as it can be found out, and to what waits."""
        self._reach.turn += 1
        for waiting in await self._listed("/tracon/api/approvals?state=pending&take=200", "approvals"):
            await self._decide(waiting)
        await self._find_out()

    async def _find_out(self) -> None:
        listed = await self._listed("/tracon/api/tools?state=unknown&take=200", "tool_calls")
        wanted = [call for call in listed if self._looks_into(call)]
        living = {host.pid for host in self._hosts}  # before their files are read
        bodies = await asyncio.to_thread(
            read_bodies, [host.tool_log for host in self._hosts] if wanted else []
        )
        for call in wanted:
            if (found := truth_of(call, bodies, living)) is not None:
                self._unanswered[found.run_id, found.call_id] = found
        for found in [*self._unanswered.values()]:
            await self._resolve(found)

    async def _listed(self, path: str, name: str) -> list[dict[str, Any]]:
        """What a host lists there now; nothing where none answers."""
        try:
            async with self._reach.request("GET", path, _TIMEOUT, f"list {name}") as response:
                answer = await response.json() if response.status == 200 else {name: []}
        except BROKEN:
            return []
        listed: list[dict[str, Any]] = answer[name]
        return listed

    async def _decide(self, waiting: dict[str, Any]) -> None:
        """The same each time it is asked of the same call: an answer may have been lost."""
        order = msgspec.json.decode(waiting["calls"][0]["arguments"])["order"]
        found = random.Random(f"{self._seed} approval {order}").random()
        if found > _APPROVED + _REJECTED:
            return
        run_id, approved = UUID(waiting["id"]), found < _APPROVED
        path = f"/tracon/api/approvals/{run_id}/decide"
        body = {"decision": "approve" if approved else "reject"}
        try:
            async with self._reach.request("POST", path, _TIMEOUT, "decide", json=body) as response:
                code = (await response.json()).get("code")
        except BROKEN:
            return
        if response.status == 200:
            self._received.decided.append(Decided(run_id=run_id, approved=approved))
        elif response.status != 503 and code != "approval_closed":
            what = f"an approval could not be decided: {response.status} {code}"
            self._received.complain("acknowledged", what, run_id)

    def _looks_into(self, call: dict[str, Any]) -> bool:
        order = msgspec.json.decode(call["arguments"])["order"]
        return random.Random(f"{self._seed} operator {order}").random() < _SHARE

    async def _resolve(self, found: Resolved) -> None:
        path = f"/tracon/api/runs/{found.run_id}/tools/{found.call_id}/resolve"
        body = {"output": found.output, "failed": found.failed}
        try:
            async with self._reach.request("POST", path, _TIMEOUT, "resolve", json=body) as response:
                code = (await response.json()).get("code")
        except BROKEN:
            return
        if response.status == 503:
            return
        del self._unanswered[found.run_id, found.call_id]
        if response.status == 200:
            self._received.resolved.append(found)
        elif response.status == 404 or code == "resolved_otherwise":
            what = f"the outcome of call {found.call_id} could not be told: {response.status} {code}"
            self._received.complain("acknowledged", what, found.run_id)


def truth_of(call: dict[str, Any], bodies: Sequence[Body], living: set[int | None]) -> Resolved | None:
    """What came of the call, whose host is gone or has left it behind; None where that is not over yet."""
    run_id, call_id = UUID(call["run_id"]), call["call_id"]
    lines = [body for body in bodies if (body.run_id, body.call_id) == (run_id, call_id)]
    order = msgspec.json.decode(call["arguments"])
    ended, fails = any(line.what == "ended" for line in lines), order["fails"]
    if ended and not fails:
        output, failed = f"{call['tool']} {order['order']} done", False
    elif lines and (ended or lines[0].pid not in living):
        output, failed = f"{call['tool']} {order['order']} does not work", True
    else:
        return None
    return Resolved(run_id=run_id, call_id=call_id, output=output, failed=failed)
