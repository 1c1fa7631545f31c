"""A run as its events have it so far: what answers in OpenAI's words are made of."""

from datetime import datetime

from app.store.feed import Frame
from domain.agent import AgentDefinition
from domain.events import (
    FinishReason,
    ModelReplied,
    Recorded,
    RunCompleted,
    RunCreated,
    RunEnd,
    RunStarted,
    ToolEffect,
    ToolInvoking,
)
from domain.events.side import SideCallReplied
from domain.ids import RunId
from domain.messages import Usage


class RunSoFar:
    """Folds one run's events. Nothing but they decide it, so that every host tells the same of a run."""

    def __init__(self, run_id: RunId) -> None:
        self.id = run_id
        self.definition: AgentDefinition | None = None
        self.usage = Usage()
        self.ending: RunEnd | None = None
        self.ended_at: datetime | None = None
        self.repeatable = True
        """Whether the same may be done again without doing anything to the world twice."""
        self._created: tuple[RunCreated, datetime] | None = None

    @property
    def created(self) -> RunCreated:
        return self._opening[0]

    @property
    def created_at(self) -> datetime:
        return self._opening[1]

    @property
    def started(self) -> bool:
        return self.definition is not None

    @property
    def finish(self) -> FinishReason | None:
        """Why the answer ends; None while there is none."""
        return self.ending.finish if isinstance(self.ending, RunCompleted) else None

    def see(self, frame: Frame) -> None:
        """Fold the next one in. What is only shown and not recorded changes nothing."""
        if not isinstance(frame, Recorded):
            return
        match frame.event:
            case RunCreated() as created:
                self._created = created, frame.at
            case RunStarted(definition=definition):
                self.definition = definition
            case ModelReplied(usage=usage) | SideCallReplied(usage=usage):
                self.usage += usage
            case ToolInvoking(effect=effect, safe_to_repeat=safe):
                self.repeatable = self.repeatable and (safe or effect is ToolEffect.READ)
            case _ if isinstance(frame.event, RunEnd):
                self.ending, self.ended_at = frame.event, frame.at
            case _:
                pass

    @property
    def _opening(self) -> tuple[RunCreated, datetime]:
        if self._created is None:
            raise RuntimeError(f"run {self.id} was told from its middle")
        return self._created
