"""A run while an actor owns it: its state in memory and the pen that writes its stream."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta

from app.clock import elapsed_s
from app.db.errors import StoreUnavailable
from app.store.change import Change
from app.store.stream_writer import Fenced, StreamWriter
from domain.commands import RunCommand
from domain.compaction import shown_to_the_model
from domain.decide import decide
from domain.events import Event, RunEvent
from domain.evolve import evolve
from domain.ids import DEFAULT_TENANT, RunId, Version
from domain.ledger import Ledger
from domain.ledger import evolve as evolve_ledger
from domain.messages import Message
from domain.run import Run
from domain.session import Session


class LiveRun:
    """The state is ahead of the store by what `flush` has not confirmed; nobody outside may see that lead."""

    def __init__(
        self,
        run: Run,
        session: Session,
        open_pen: Callable[[Version], StreamWriter],
        time_s: float,
        ledger: Ledger | None = None,
    ) -> None:
        """It may take `time_s` from now on, whatever becomes of this host's time of day."""
        self.run = run
        self.session = session
        self._over_at = elapsed_s() + time_s
        self.ledger = ledger or Ledger()
        self.ended_below = 0
        """How many runs below this one were ended for its own end's sake (CANCEL-3)."""
        self.on_fact: Callable[[RunEvent], None] | None = None
        """Told of every fact at the moment that the run knows it."""
        self._open_pen = open_pen
        self._pen: StreamWriter | None = None

    @property
    def id(self) -> RunId:
        return self.run.id

    @property
    def tenant(self) -> str:
        return self.run.created.tenant if self.run.created else DEFAULT_TENANT

    @property
    def streaming(self) -> bool:
        """Whether somebody asked to see the answer as it is written."""
        return self.run.created is not None and self.run.created.streaming

    def may_take(self, time_s: float) -> None:
        """From now on, however long it has waited for this."""
        self._over_at = elapsed_s() + time_s

    @property
    def remaining_s(self) -> float:
        """Time to the run's deadline."""
        return self._over_at - elapsed_s()

    @property
    def deadline(self) -> datetime:
        """When its time is over, as this host sees the time of day."""
        return datetime.now(UTC) + timedelta(seconds=self.remaining_s)

    @property
    def conversation(self) -> tuple[Message, ...]:
        """What the model is shown: session and turn so far, the older part of it as a summary (CHAIN-13)."""
        return shown_to_the_model(self.run, self.session.messages)

    def take_pen(self) -> StreamWriter:
        """From here on nobody else writes the stream. A run that waits for its turn leaves it to others."""
        if self._pen is None:
            self._pen = self._open_pen(self.run.version)
        return self._pen

    def begun(self, events: Sequence[RunEvent]) -> None:
        """The run was begun by an append of its own, before its pen was taken."""
        for event in events:
            self.run = evolve(self.run, event)
        self.take_pen()

    def execute(
        self, command: RunCommand, *, within_s: float = 0.0, alongside: Sequence[Change] = ()
    ) -> None:
        """Decide, evolve, and queue the facts for the log. Raise what the pen raises once it is lost.

        `within_s`: how long the facts may wait for others that go down with them. `alongside`: changes of
        other streams, in the same append.
        """
        events, pen = decide(self.run, command), self.take_pen()
        for event in events:
            self.run = evolve(self.run, event)
            self.ledger = evolve_ledger(self.ledger, self.id, event)
            if self.on_fact is not None:
                self.on_fact(event)
        if events:
            pen.record(events, alongside, within_s=within_s)

    def note(self, command: RunCommand) -> None:
        """Execute it from a timer, which must not raise: a lost pen tells the actor by itself."""
        with suppress(Fenced, StoreUnavailable):
            self.execute(command)

    async def flush(self) -> None:
        """The durability barrier (EVENT-2): return when everything executed so far is committed."""
        if self._pen is not None:
            await self._pen.flush()

    def show(self, event: Event) -> None:
        """Let watchers see what will not be recorded by itself."""
        self.take_pen().show(event)

    def release(self) -> None:
        """Give up the pen: from here on somebody else may write the stream."""
        self.on_fact = None  # whoever listened refers to the run, too
        if self._pen is not None:
            self._pen.close()
