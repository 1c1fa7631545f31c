"""A run's events as those of a response, numbered alike whenever and wherever they are told."""

from collections.abc import Iterator

from app.http.display import encode
from app.http.openai.response_events import (
    ContentPartEvent,
    Lifecycle,
    LifecycleType,
    OutputItem,
    OutputItemType,
    PartType,
    ResponseEvent,
    StreamErrorEvent,
    TextDeltaEvent,
    TextDoneEvent,
)
from app.http.openai.response_object import OutputMessage, OutputText, Status, status_of
from app.http.openai.response_so_far import ResponseSoFar
from app.http.openai.speech import Began, Ended, Said, Words
from app.store.feed import Frame
from domain.events import ModelReplied, RunCompleted, RunCreated, RunStarted
from domain.ids import RunId

_LAST: dict[Status, LifecycleType] = {
    "completed": "response.completed",
    "incomplete": "response.incomplete",
}


class ResponseTeller:
    """Tells one stream. `told` is the number of the last event that its client has."""

    def __init__(self, run_id: RunId, starting_after: int = -1) -> None:
        self.told = starting_after
        self._so_far = ResponseSoFar(run_id)
        self._next = 0
        self._shows = False
        """Words are shown that are not recorded. However many, to who comes later they are one event."""

    def tell(self, frame: Frame) -> bytes:
        """The frames that this event makes, without what the client has."""
        return b"".join(frame_of(event) for event in self._events(frame) if self._is_new(event))

    def _events(self, frame: Frame) -> Iterator[ResponseEvent]:
        self._so_far.run.see(frame)
        if isinstance(frame.event, RunCreated):
            yield self._lifecycle("response.created")
            if frame.event.queue is not None:
                yield self._lifecycle("response.queued")
        elif isinstance(frame.event, RunStarted):
            yield self._lifecycle("response.in_progress")
        for said in self._so_far.hear(frame):
            yield from self._said(said)
        if isinstance(frame.event, ModelReplied):
            self._settle()
        if self._so_far.run.ending is frame.event:
            yield self._end()

    def _is_new(self, event: ResponseEvent) -> bool:
        shown = self._shows and isinstance(event, TextDeltaEvent)
        if event.sequence_number <= self.told and not shown:
            return False
        self.told = max(self.told, event.sequence_number)
        return True

    def _said(self, said: Said) -> Iterator[ResponseEvent]:
        match said:
            case Began():
                item = OutputMessage(id=self._so_far.item_id, status="in_progress", content=())
                yield self._item("response.output_item.added", len(self._so_far.output), item)
                yield self._part("response.content_part.added", len(self._so_far.output), OutputText(text=""))
            case Words():
                yield self._delta(said)
            case Ended():
                self._settle()
                yield from self._ended(said)

    def _ended(self, ended: Ended) -> Iterator[ResponseEvent]:
        place = len(self._so_far.output) - 1
        yield TextDoneEvent(
            sequence_number=self._number(), item_id=self._so_far.item_id, output_index=place, text=ended.text
        )
        yield self._part("response.content_part.done", place, OutputText(text=ended.text))
        yield self._item("response.output_item.done", place, self._so_far.output[place])

    def _delta(self, words: Words) -> TextDeltaEvent:
        self._shows = self._shows or not words.recorded
        return TextDeltaEvent(
            sequence_number=self._next if self._shows else self._number(),
            item_id=self._so_far.item_id,
            output_index=len(self._so_far.output),
            delta=words.text,
        )

    def _item(self, type_: OutputItemType, place: int, item: OutputMessage) -> OutputItem:
        return OutputItem(type=type_, sequence_number=self._number(), output_index=place, item=item)

    def _part(self, type_: PartType, place: int, part: OutputText) -> ContentPartEvent:
        return ContentPartEvent(
            type=type_,
            sequence_number=self._number(),
            item_id=self._so_far.item_id,
            output_index=place,
            part=part,
        )

    def _lifecycle(self, type_: LifecycleType) -> Lifecycle:
        return Lifecycle(type=type_, sequence_number=self._number(), response=self._so_far.response)

    def _end(self) -> Lifecycle:
        run = self._so_far.run
        if not isinstance(run.ending, RunCompleted):
            # Who was shown text of which nothing is recorded now has counted further than the record.
            self._next = max(self._next, self.told + 1)
        return self._lifecycle(_LAST.get(status_of(run), "response.failed"))

    def _settle(self) -> None:
        """What was shown is recorded now: it has used up its number."""
        if self._shows:
            self._shows = False
            self._number()

    def _number(self) -> int:
        self._next += 1
        return self._next - 1


def frame_of(event: ResponseEvent | StreamErrorEvent) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (event.type.encode(), encode(event))
