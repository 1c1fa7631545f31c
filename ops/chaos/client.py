"""One client of a trial: submits, watches, loses its connection, goes on elsewhere, cancels, asks again."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

from aiohttp import ClientResponse, ClientSession, ClientTimeout

from ops.chaos.host import Host
from ops.chaos.reach import BROKEN, PAUSE_S, Reach
from ops.chaos.received import Answer, Received
from ops.chaos.settings import AGENT
from ops.chaos.workload import Submission, Way

_STREAM_TIMEOUT = ClientTimeout(total=None, sock_connect=2, sock_read=3)
_ANSWER_TIMEOUT = ClientTimeout(total=45, sock_connect=2)
_SHORT_TIMEOUT = ClientTimeout(total=5, sock_connect=2)

_WAITS = "RunAwaitingApproval"
_ENDS = ("RunCompleted", "RunFailed", "RunCancelled", _WAITS)


class HungUp(Exception):
    """The client has had enough of this connection."""


class Client:
    """Without a key, it does not repeat a submission of which it does not know what became."""

    def __init__(
        self,
        submission: Submission,
        hosts: Sequence[Host],
        session: ClientSession,
        received: Received,
        over: asyncio.Event,
    ) -> None:
        """Once it is `over`, nothing is under way any more that would be worth waiting for."""
        self._submission = submission
        self._reach = Reach(hosts, session, received, submission.host)
        self._received = received
        self._hang_ups = list(submission.hangs_up_after)
        self._run_id: UUID | None = None
        self._seen = 0
        self._ended = False
        self._waits = False
        self._over = over

    async def run(self) -> None:
        """To the end of the submission, or to where nothing more can be learnt."""
        async with asyncio.TaskGroup() as tasks:
            cancelling = tasks.create_task(self._cancel_in_time())
            try:
                await self._submit()
                if self._waits:
                    await cancelling  # it can be cancelled still, and whoever wants that does not wait to see
            finally:
                cancelling.cancel()

    async def _submit(self) -> None:
        match self._submission.way:
            case Way.STREAM:
                await self._stream()
            case Way.JSON:
                await self._ask_once()
            case Way.KEYED:
                await self._ask_until_answered()
            case Way.QUEUED:
                await self._queue()

    # --- ways to submit

    async def _stream(self) -> None:
        try:
            async with self._post("text/event-stream", _STREAM_TIMEOUT) as response:
                if response.status != 200:
                    return
                self._learn(UUID(response.headers["X-Run-Id"]))
                await self._read(response)
        except (*BROKEN, HungUp):
            pass
        await self._watch_to_the_end()

    async def _ask_once(self) -> None:
        try:
            async with self._post("application/json", _ANSWER_TIMEOUT) as response:
                self._keep(response, await response.read())
        except BROKEN:
            pass

    async def _ask_until_answered(self) -> None:
        """The same request until it has an answer, then once more."""
        replays = 2
        while replays:
            self._reach.turn += 1
            try:
                async with self._post("application/json", _ANSWER_TIMEOUT) as response:
                    body = await response.read()
                    if self._keep(response, body):
                        replays -= 1
                    elif response.status not in (409, 503) or self._over.is_set():
                        return
            except BROKEN:
                pass
            await asyncio.sleep(PAUSE_S)

    async def _queue(self) -> None:
        """With a key until it is accepted, then once more."""
        wanted = 2 if self._submission.key else 1
        while wanted:
            try:
                async with self._post("application/json", _SHORT_TIMEOUT) as response:
                    body = await response.read()
                    if response.status == 202:
                        self._accepted(UUID(response.headers["Location"].rpartition("/")[2]), body)
                        wanted -= 1
                    elif response.status not in (409, 503):
                        return
            except BROKEN:
                pass
            if not self._submission.key or self._over.is_set():
                break
            self._reach.turn += 1
            await asyncio.sleep(PAUSE_S)
        await self._watch_to_the_end()

    @asynccontextmanager
    async def _post(self, accept: str, limits: ClientTimeout) -> AsyncIterator[ClientResponse]:
        submission = self._submission
        headers = {"Accept": accept}
        if submission.key:
            headers["Idempotency-Key"] = submission.key
        body: dict[str, Any] = {"message": submission.plan.message}
        if submission.way is Way.QUEUED:
            headers["Prefer"] = "respond-async"
            body["queue"] = {"priority": submission.priority, "max_attempts": submission.max_attempts}
        if submission.session_id:
            body["session_id"] = submission.session_id
        path = f"/tracon/api/agents/{AGENT}/run"
        async with self._reach.request(
            "POST", path, limits, "submit", json=body, headers=headers
        ) as response:
            yield response

    def _keep(self, response: ClientResponse, body: bytes) -> bool:
        """Take note of an answer about the run's end; whether it is a success."""
        told = response.headers.get("X-Run-Id")
        if told:
            self._take_note(UUID(told), response.status, body)
        return response.ok

    def _accepted(self, run_id: UUID, body: bytes) -> None:
        """What was accepted is kept, and with a key it is the same run each time."""
        if self._run_id not in (None, run_id):
            self._received.complain("answers", f"it was accepted as run {self._run_id} before", run_id)
        self._take_note(run_id, 202, body)

    def _take_note(self, run_id: UUID, status: int, body: bytes) -> None:
        self._learn(run_id)
        key, number = self._submission.key, self._submission.number
        self._received.answers.append(Answer(number=number, status=status, run_id=run_id, body=body, key=key))

    def _learn(self, run_id: UUID) -> None:
        self._run_id = run_id
        self._received.told_of(run_id, self._submission.number)

    # --- watching

    async def _watch_to_the_end(self) -> None:
        while self._run_id and not self._ended:
            self._reach.turn += 1
            headers = {"Accept": "text/event-stream"}
            if self._seen:
                headers["Last-Event-ID"] = str(self._seen)
            path = f"/tracon/api/runs/{self._run_id}/events"
            try:
                async with self._reach.request(
                    "GET", path, _STREAM_TIMEOUT, "watch", headers=headers
                ) as response:
                    if response.status == 200:
                        await self._read(response)
                    elif response.status == 204:
                        return
                    elif response.status == 404:
                        self._received.complain(
                            "acknowledged", "a run that was told of is not found", self._run_id
                        )
                        return
            except (*BROKEN, HungUp):
                pass
            if not self._ended:
                await asyncio.sleep(PAUSE_S)

    async def _read(self, response: ClientResponse) -> None:
        """Frames until the stream ends; each must be the one that follows what was seen."""
        patience = self._hang_ups.pop(0) if self._hang_ups else None
        while not self._ended:
            frame = await response.content.readuntil(b"\n\n")
            if not frame.endswith(b"\n\n"):
                return  # the stream is over, and what was cut off in the middle of it is no frame
            self._take(frame.decode())
            if patience is not None and (patience := patience - 1) <= 0:
                raise HungUp

    def _take(self, text: str) -> None:
        fields = dict(line.split(": ", 1) for line in text.strip().splitlines() if not line.startswith(":"))
        if "id" not in fields:
            return
        assert self._run_id is not None
        frame, number = json.loads(fields["data"]), int(fields["id"])
        if number != self._seen + 1:
            what = f"after event {self._seen} a stream went on with event {number}"
            self._received.complain("streams", what, self._run_id)
        self._seen = number
        self._received.frame(self._run_id, frame)
        self._ended, self._waits = fields["event"] in _ENDS, fields["event"] == _WAITS

    # --- cancelling

    async def _cancel_in_time(self) -> None:
        after_s = self._submission.cancels_after_s
        if after_s is None:
            return
        await asyncio.sleep(after_s)
        if self._run_id is None:
            return
        path = f"/tracon/api/runs/{self._run_id}/cancel"
        try:
            async with self._reach.request("POST", path, _SHORT_TIMEOUT, "cancel") as response:
                if response.status == 202:
                    self._received.cancels.append(self._run_id)
                elif response.status == 404:
                    self._received.complain(
                        "acknowledged", "a run that was told of cannot be cancelled: 404", self._run_id
                    )
        except BROKEN:
            pass
