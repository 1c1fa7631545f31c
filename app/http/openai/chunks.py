"""A run's events as the frames of a streamed chat completion."""

from msgspec import UNSET

from app.http.display import encode
from app.http.openai.completion import (
    ChatCompletionChunk,
    ChunkChoice,
    ChunkDelta,
    CompletionUsage,
    finish_reason,
)
from app.http.openai.names import completion_id
from app.http.openai.run_so_far import RunSoFar
from app.http.openai.speech import Began, Speech, Words
from app.store.feed import Frame
from domain.events import RunCompleted
from domain.ids import RunId

DONE = b"data: [DONE]\n\n"
BETWEEN_TEXTS = "\n\n"
"""Stands between what was said on the way to the answer and what comes after it."""


class Chunks:
    """Tells one stream. The first chunk comes with the first words."""

    def __init__(self, run_id: RunId, *, with_usage: bool) -> None:
        self.run = RunSoFar(run_id)
        self._speech = Speech()
        self._with_usage = with_usage
        self._begun = False
        self._separator = ""

    def tell(self, frame: Frame) -> bytes:
        """The frames that this event makes; none for most."""
        self.run.see(frame)
        told = b"".join(self._words(said) for said in self._speech.hear(frame))
        return told + self._end() if isinstance(frame.event, RunCompleted) else told

    def _words(self, said: object) -> bytes:
        match said:
            case Began(number=number) if number:
                # Nothing that was said before could be known not to be the answer.
                self._separator = BETWEEN_TEXTS if self._begun else ""
                return b""
            case Words(text=text):
                text, self._separator = self._separator + text, ""
                return self._opening() + self._chunk(ChunkChoice(delta=ChunkDelta(content=text)))
            case _:
                return b""

    def _opening(self) -> bytes:
        if self._begun:
            return b""
        self._begun = True
        return self._chunk(ChunkChoice(delta=ChunkDelta(role="assistant", content="")))

    def _end(self) -> bytes:
        finish = self._chunk(ChunkChoice(finish_reason=finish_reason(self.run)))
        usage = self._chunk(usage=CompletionUsage.of(self.run.usage)) if self._with_usage else b""
        return self._opening() + finish + usage + DONE

    def _chunk(self, *choices: ChunkChoice, usage: CompletionUsage | None = None) -> bytes:
        run = self.run
        chunk = ChatCompletionChunk(
            id=completion_id(run.id),
            created=int(run.created_at.timestamp()),
            model=run.created.agent,
            choices=choices,
            usage=usage if self._with_usage else UNSET,
        )
        return b"data: %b\n\n" % encode(chunk)
