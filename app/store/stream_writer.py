"""The pen of a stream's owner: facts go down in order, or not at all."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Protocol

from app.store.change import Change
from app.store.errors import Fenced, VersionConflict
from domain.events import Event, Recorded
from domain.ids import DEFAULT_TENANT, StreamId, Version

__all__ = ["Fenced", "StreamWriter"]

Outcome = asyncio.Future[list[Recorded[Event]]]


class Log(Protocol):
    """What a pen needs of the event log."""

    def submit(self, *changes: Change, patience_s: float, proven: bool) -> Outcome: ...
    def own(self, stream_id: StreamId, pen: object) -> None: ...
    def disown(self, stream_id: StreamId, pen: object) -> None: ...
    def publish_live(self, stream_id: StreamId, event: Event, after: int) -> None: ...


class StreamWriter:
    """Writes one stream on behalf of its only owner (EVENT-3).

    One append is under way at a time; what is recorded meanwhile goes into the next, so nothing can be
    stored after something that was not. The first failure is the last word: `record` and `flush` raise it
    from then on, and nothing more of this stream is sent.

    - Fenced: somebody else moved the stream. Stop, have no further effect.
    - VersionConflict: a stream written alongside had moved, and nothing of that append was stored. Read it
      again and open a new pen at `version`.
    - StoreUnavailable: the store was away for longer than `patience_s`. What was under way may have been
      stored.

    `on_committed` is told each append's events of this stream, `on_lost` the failure, at the moment they
    are known.
    """

    def __init__(
        self,
        log: Log,
        stream_id: StreamId,
        version: Version,
        tenant: str = DEFAULT_TENANT,
        patience_s: float = 0.0,
    ) -> None:
        self._log = log
        self._stream_id = stream_id
        self._tenant = tenant
        self._patience_s = patience_s
        self._version = version
        self._events: list[Event] = []
        self._alongside: list[Change] = []
        self._under_way: Outcome | None = None
        self._answer: asyncio.Event | None = None
        """Of what is under way, where somebody waits for it: most pens are idle most of the time."""
        self._timer: asyncio.TimerHandle | None = None
        self._sent = 0
        self._proven = False
        self._failure: BaseException | None = None
        self.on_committed: Callable[[Sequence[Recorded[Event]]], None] | None = None
        self.on_lost: Callable[[BaseException], None] | None = None
        log.own(stream_id, self)

    @property
    def version(self) -> Version:
        """How much of the stream is committed, as far as this pen knows."""
        return self._version

    @property
    def end(self) -> Version:
        """What `version` will be when everything recorded so far is committed."""
        return Version(self._version + self._sent + len(self._events))

    def record(
        self, events: Sequence[Event], alongside: Sequence[Change] = (), *, within_s: float = 0.0
    ) -> None:
        """Queue events in order, `alongside` changes of other streams in the same append. Never waits.

        `within_s`: how long they may wait for company, which saves an append. A flush waits for nothing.
        """
        if self._failure:
            raise self._failure
        if not events:
            raise ValueError("there is nothing to record")
        self._events += events
        self._alongside += alongside
        if within_s <= 0:
            self._send_what_waits()
        elif self._timer is None and self._under_way is None:
            self._timer = asyncio.get_running_loop().call_later(within_s, self._send_what_waits)
        if self._failure:
            raise self._failure

    async def flush(self) -> None:
        """The durability barrier (EVENT-2): return when everything recorded before this call is committed."""
        end = self.end
        self._send_what_waits()
        while self._version < end and not self._failure:
            if self._answer is None:
                self._answer = asyncio.Event()
            await self._answer.wait()
        if self._failure:
            raise self._failure

    def show(self, event: Event) -> None:
        """Let watchers see something that is not recorded, at this point of the stream."""
        self._log.publish_live(self._stream_id, event, after=self.end)

    def close(self) -> None:
        """Own the stream no more. What was recorded is still written."""
        self._send_what_waits()
        self._log.disown(self._stream_id, self)

    def _send_what_waits(self) -> None:
        if self._events and self._under_way is None and not self._failure:
            self._send()

    def _send(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        change = Change(
            stream_id=self._stream_id, expected=self._version, tenant=self._tenant, events=tuple(self._events)
        )
        alongside, self._alongside = self._alongside, []
        self._sent = len(self._events)
        self._events = []
        proven = self._proven and not alongside
        try:
            self._under_way = self._log.submit(change, *alongside, patience_s=self._patience_s, proven=proven)
        except Exception as error:  # noqa: BLE001 - told to whoever records or flushes
            self._lose(error)  # these events cannot even be encoded, so nothing may follow them
            return
        self._under_way.add_done_callback(self._settled)

    def _settled(self, outcome: Outcome) -> None:
        self._under_way = None
        if self._answer is not None:
            self._answer.set()
            self._answer = None
        if outcome.cancelled():
            self._lose(asyncio.CancelledError())
        elif failure := outcome.exception():
            self._lose(self._understood(failure))
        else:
            self._version = Version(self._version + self._sent)
            self._sent = 0
            self._proven = True
            if self._events:
                self._send()
            if self.on_committed:
                self.on_committed([one for one in outcome.result() if one.stream_id == self._stream_id])

    def _understood(self, failure: BaseException) -> BaseException:
        if isinstance(failure, VersionConflict) and self._stream_id in failure.stream_ids:
            fenced = Fenced(self._stream_id)
            fenced.__cause__ = failure
            return fenced
        return failure

    def _lose(self, failure: BaseException) -> None:
        self._failure = failure
        self._log.disown(self._stream_id, self)
        if self.on_lost:
            self.on_lost(failure)
