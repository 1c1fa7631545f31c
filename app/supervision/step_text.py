"""The text of one step's answer: what was told of it, and what the next call is to carry on (CHAIN-14)."""

from app.settings import RecordingSettings
from app.supervision.delta_window import DeltaWindow
from app.supervision.live_run import LiveRun
from domain.commands import RecordText
from domain.events import TextDelta


class StepText:
    """Tells the run's watchers, and remembers what they have heard in this step."""

    def __init__(self, live: LiveRun, recording: RecordingSettings) -> None:
        self._live = live
        self._recording = recording
        self._step = 0
        self._told: list[str] = []
        self._window: DeltaWindow | None = None
        self.carried = ""
        """What links that broke off have told."""

    @property
    def so_far(self) -> str:
        """What the next call carries on: a text that its output limit ended, or one whose link broke off."""
        return self._live.run.unfinished_text + self.carried

    @property
    def shown_only(self) -> str:
        """What watchers have heard of the call and nobody has recorded."""
        return "".join(self._told) if self._recording.deltas == "live" else ""

    def begin_step(self, step: int) -> None:
        self._step = step
        self.carried = ""

    def begin_call(self) -> None:
        self._told.clear()
        self._window = DeltaWindow(
            self._show, window_s=self._recording.delta_window, max_bytes=self._recording.delta_bytes
        )

    def tell(self, text: str) -> None:
        """More of the answer, as it comes."""
        self._told.append(text)
        if self._window is not None:
            self._window.add(text)

    def end_call(self) -> None:
        """Everything told is on its way to the watchers."""
        if self._window is not None:
            self._window.flush()
            self._window = None

    def carry_on(self) -> None:
        """The call broke off: what it has told is the beginning of what the next one is to say."""
        self.carried += "".join(self._told)
        self._told.clear()

    def _show(self, text: str) -> None:
        if self._recording.deltas == "live":
            self._live.show(TextDelta(step=self._step, text=text))
        else:
            self._live.note(RecordText(step=self._step, text=text))
