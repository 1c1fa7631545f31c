"""Questions that must be answered soon or not at all."""

import asyncio

import pytest

from app.http.probes import Probe


class Question:
    """Is asked, and answers when the test says so."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def ask(self) -> int:
        self.asked += 1
        return await asyncio.shield(self.answer)


async def test_an_answer_is_passed_on_and_the_next_question_is_a_new_one() -> None:
    question = Question()
    question.answer.set_result(7)
    probe = Probe(question.ask)
    assert (await probe.answer(5), await probe.answer(5), question.asked) == (7, 7, 2)


async def test_who_does_not_get_an_answer_in_time_leaves_and_the_next_one_joins_the_wait() -> None:
    """EVENT-8: a store that hangs costs one connection, not one for every probe."""
    question = Question()
    probe = Probe(question.ask)
    for _ in range(3):
        with pytest.raises(TimeoutError):
            await probe.answer(0.01)
    last = asyncio.create_task(probe.answer(5))
    await asyncio.sleep(0)
    question.answer.set_result(7)
    assert (await last, question.asked) == (7, 1)


async def test_what_the_question_raises_is_raised() -> None:
    question = Question()
    question.answer.set_exception(LookupError("gone"))
    with pytest.raises(LookupError):
        await Probe(question.ask).answer(5)


async def test_a_failure_after_everybody_left_is_nobodys() -> None:
    question = Question()
    probe = Probe(question.ask)
    with pytest.raises(TimeoutError):
        await probe.answer(0.01)
    question.answer.set_exception(LookupError("gone"))
    with pytest.raises(LookupError):
        await probe.answer(5)
