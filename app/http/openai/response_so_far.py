"""A response as the events of its run have it so far."""

from collections.abc import Iterator

from app.http.openai.names import message_id
from app.http.openai.response_object import (
    ItemStatus,
    OutputMessage,
    OutputText,
    Phase,
    ResponseObject,
    response_of,
)
from app.http.openai.run_so_far import RunSoFar
from app.http.openai.speech import Began, Ended, Said, Speech
from app.store.feed import Frame
from domain.ids import RunId


class ResponseSoFar:
    """Folds one run from its first event."""

    def __init__(self, run_id: RunId) -> None:
        self.run = RunSoFar(run_id)
        self.output: list[OutputMessage] = []
        self.item_id = ""
        """The item that is being written, or that was last."""
        self._writes = False
        self._speech = Speech()

    @property
    def response(self) -> ResponseObject:
        """The response as it is now."""
        if not self._writes:
            return response_of(self.run, tuple(self.output))
        status: ItemStatus = "incomplete" if self.run.ending else "in_progress"
        begun = message(self.item_id, status, self._speech.unfinished)
        return response_of(self.run, (*self.output, begun))

    def see(self, frame: Frame) -> None:
        """Fold the next one in."""
        self.run.see(frame)
        for _ in self.hear(frame):
            pass

    def hear(self, frame: Frame) -> Iterator[Said]:
        """What is said with it, each piece told when it is in the output."""
        for said in self._speech.hear(frame):
            match said:
                case Began(number=number):
                    self.item_id = message_id(self.run.id.hex, number)
                    self._writes = True
                case Ended(text=text, is_answer=is_answer):
                    phase: Phase = "final_answer" if is_answer else "commentary"
                    self.output.append(message(self.item_id, "completed", text, phase))
                    self._writes = False
            yield said


def message(item_id: str, status: ItemStatus, text: str, phase: Phase | None = None) -> OutputMessage:
    content = OutputText(text=text)
    if phase is None:
        return OutputMessage(id=item_id, status=status, content=(content,))
    return OutputMessage(id=item_id, status=status, phase=phase, content=(content,))
