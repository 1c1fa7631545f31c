"""What an agent says in its turn, for a client from whom nothing can be taken back."""

from collections.abc import Iterator

import msgspec

from app.store.feed import Frame
from domain.agent import AgentDefinition
from domain.errors import Unavailable
from domain.events import (
    FinishReason,
    ModelFallbackUsed,
    ModelReplied,
    Recorded,
    RunCompleted,
    RunCreated,
    RunStarted,
    TextDelta,
    TurnNudged,
)
from domain.events.side import AnswerSentBack


def _may_be_refused(definition: AgentDefinition) -> bool:
    """Whether an answer may turn out not to be the answer, so that only the last one is said."""
    return definition.response_schema is not None or definition.loop is not None


class Began(msgspec.Struct, frozen=True):
    """A text begins. Texts of a turn are numbered from 0."""

    number: int


class Words(msgspec.Struct, frozen=True):
    """The text goes on. What was only shown, and is not recorded, is not told again to who comes later."""

    text: str
    recorded: bool = True


class Ended(msgspec.Struct, frozen=True):
    """The text is whole. One before calls of tools is said on the way; others are meant as the answer."""

    text: str
    is_answer: bool


Said = Began | Words | Ended


class WordsLost(Unavailable):
    """The watcher was so slow that text which nobody recorded passed it by. The run has the whole text."""

    code = "words_lost"

    def __init__(self) -> None:
        super().__init__("This stream was too slow and has lost some text. The run itself goes on.")


class Speech:
    """Folds a run's events into what is said.

    Text is told as it comes. It is held back until the run has ended where it might have to be taken back:
    when the answer must meet a schema or a criterion, and when nobody asked for a stream.
    """

    def __init__(self) -> None:
        self._texts: list[Ended] = []
        """Those that have ended, but for the last one while `_is_open`."""
        self._is_open = False
        self._told = ""
        """The text of the model call that is under way, or of the last one."""
        self._holds = False
        self._answer_only = False

    @property
    def unfinished(self) -> str:
        """The text that was told in part."""
        return (self._texts[-1].text if self._is_open else "") + self._told

    def hear(self, frame: Frame) -> Iterator[Said]:
        match frame.event:
            case RunCreated(streaming=streaming):
                self._holds = not streaming
            case RunStarted(definition=definition):
                self._answer_only = definition is not None and _may_be_refused(definition)
                self._holds = self._holds or self._answer_only
            case TextDelta(text=text) if not self._holds:
                self._told += text
                yield from self._words(text, recorded=isinstance(frame, Recorded))
            case ModelReplied() as replied:
                yield from self._replied(replied)
            case TurnNudged() | AnswerSentBack():
                yield from self._close()
            case ModelFallbackUsed(restarted=True):
                self._texts.clear()
                self._is_open = False
            case RunCompleted():
                yield from self._close()
                yield from self._let_go()
            case _:
                pass

    def _words(self, text: str, *, recorded: bool = True) -> Iterator[Said]:
        if not self._is_open:
            self._open()
            yield Began(len(self._texts) - 1)
        yield Words(text, recorded)

    def _replied(self, replied: ModelReplied) -> Iterator[Said]:
        whole, told = replied.message.content, self._told
        self._told = ""
        if not whole.startswith(told):
            raise WordsLost
        if not whole:
            return
        if self._holds:
            self._open()
        elif rest := whole[len(told) :]:
            yield from self._words(rest)
        self._texts[-1] = Ended(self._texts[-1].text + whole, replied.finish is not FinishReason.TOOL_CALLS)
        if replied.finish is not FinishReason.LENGTH:  # the next call may carry the text on
            yield from self._close()

    def _open(self) -> None:
        if not self._is_open:
            self._is_open = True
            self._texts.append(Ended("", is_answer=True))

    def _close(self) -> Iterator[Said]:
        if self._is_open:
            self._is_open = False
            if not self._holds:
                yield self._texts[-1]

    def _let_go(self) -> Iterator[Said]:
        if not self._holds:
            return
        kept = list(enumerate(self._texts))
        for number, ended in kept[-1:] if self._answer_only else kept:
            yield from (Began(number), Words(ended.text), ended)
