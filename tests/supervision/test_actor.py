"""An actor is interrupted by mail, and by nothing that only looks like it."""

import asyncio

import pytest

from app.supervision.actor import Actor, Interrupted


class Waiting(Actor[str]):
    """Waits for ever in an interruptible block and tells how that ended."""

    def __init__(self) -> None:
        super().__init__()
        self.waiting = asyncio.Event()
        self.closed = False

    async def run(self) -> list[str]:
        try:
            with self.interruptible():
                self.waiting.set()
                try:
                    await asyncio.Event().wait()
                finally:
                    self.closed = True
        except Interrupted:
            return list(self.mail)
        return []


async def test_a_message_interrupts_a_wait_and_what_was_open_is_closed() -> None:
    """CANCEL-3: the wait unwinds at once, and the task goes on."""
    actor = Waiting()
    task = asyncio.create_task(actor.run())
    await actor.waiting.wait()
    actor.tell("stop")
    assert await task == ["stop"]
    assert actor.closed
    assert task.cancelling() == 0


async def test_several_messages_interrupt_once() -> None:
    actor = Waiting()
    task = asyncio.create_task(actor.run())
    await actor.waiting.wait()
    for word in ("one", "two", "three"):
        actor.tell(word)
    assert await task == ["one", "two", "three"]


async def test_mail_that_came_before_the_block_interrupts_it_at_its_start() -> None:
    actor = Waiting()
    actor.tell("early")
    assert await actor.run() == ["early"]
    assert not actor.waiting.is_set()


async def test_a_cancelled_task_stays_cancelled_even_with_mail() -> None:
    """The host stopping the task is not a message."""
    actor = Waiting()
    task = asyncio.create_task(actor.run())
    await actor.waiting.wait()
    task.cancel()
    actor.tell("stop")
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_deadline_inside_the_block_is_a_deadline() -> None:
    class Hurried(Actor[str]):
        async def run(self) -> str:
            try:
                with self.interruptible():
                    async with asyncio.timeout(0):
                        await asyncio.Event().wait()
            except TimeoutError:
                return "late"
            except Interrupted:
                return "interrupted"
            return "never"

    assert await Hurried().run() == "late"


async def test_an_error_that_meets_a_message_wins() -> None:
    """What broke first is the cause; the mail is still there."""

    class Breaking(Waiting):
        async def run(self) -> list[str]:
            with self.interruptible():
                self.waiting.set()
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    raise ValueError("broke while unwinding") from None
            return []

    actor = Breaking()
    task = asyncio.create_task(actor.run())
    await actor.waiting.wait()
    actor.tell("stop")
    with pytest.raises(ValueError, match="unwinding"):
        await task
    assert task.cancelling() == 0
    assert list(actor.mail) == ["stop"]
