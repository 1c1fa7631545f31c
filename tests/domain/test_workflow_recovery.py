"""What becomes of a workflow's run of the queue whose worker is gone (WF-4)."""

from uuid import UUID

import msgspec
import pytest

from domain.commands import CancelRun, FailRun, RequestCancel
from domain.continuation import PastRun
from domain.events import ChildRunStarted, RunCancelled, RunContinued, RunEvent, RunFailed
from domain.events.workflow import WorkflowOpened
from domain.evolve import fold
from domain.failure import ErrorClass, RunError
from domain.ids import RunId
from domain.queueing import QueueSpec
from domain.workflow.recovery import Recovery, is_recoverable, queue_after, recover
from domain.workflow.resume import Next
from tests.domain.test_workflow_plan import agent, by_name, person, sequence
from tests.domain.workflow_playing import Player

THREE = sequence(agent("a"), agent("b"), agent("c"))
AFTER = Next(run_id=RunId(UUID(int=99)), queue=QueueSpec(max_attempts=2))
ORPHANED = RunError(message="gone", type="orphaned", error_class=ErrorClass.INFRASTRUCTURE)


def in_its_second_step(number: int = 1) -> Player:
    """A run that has one super-step behind it and is in the next one."""
    player = Player(THREE, by_name, number=number)
    while player.workflow.progress.step < 1:
        player.step()
    player.step()
    return player


def past(player: Player, *more: RunEvent) -> PastRun:
    return PastRun(run_id=player.run.id, events=(*player.events, *more))


def recovered(*chain: PastRun, max_attempts: int = 1, is_last: bool = False) -> Recovery | None:
    return recover(chain, AFTER, max_attempts=max_attempts, is_last=is_last)


def test_an_open_run_is_closed_as_interrupted_and_gone_on_with_from_its_latest_checkpoint() -> None:
    """WF-4"""
    player = in_its_second_step()
    verdict = recovered(past(player))
    assert verdict is not None
    assert verdict.going_on is not None
    [closed] = verdict.closing
    assert isinstance(closed, RunFailed)
    assert (closed.error_type, closed.error_class) == ("interrupted", ErrorClass.INFRASTRUCTURE)
    assert verdict.going_on.open.progress.step == 1
    assert verdict.going_on.open.from_checkpoint == f"{player.run.id}:1"
    assert verdict.going_on.create.continued_from_run_id == player.run.id
    assert verdict.going_on.create.queue == AFTER.queue
    assert verdict.going_on.afterwards == (RunContinued(by=AFTER.run_id),)


def test_one_that_reconciliation_has_closed_is_gone_on_with_as_it_is() -> None:
    """WF-4"""
    player = in_its_second_step()
    player.tell(FailRun(error=ORPHANED))
    verdict = recovered(past(player))
    assert verdict is not None
    assert (verdict.closing, verdict.going_on is not None) == ((), True)


@pytest.mark.parametrize(("max_attempts", "is_last"), [(0, False), (1, True), (100, True)])
def test_past_the_limit_or_at_the_last_attempt_the_chain_is_closed(max_attempts: int, is_last: bool) -> None:
    """WF-4"""
    verdict = recovered(past(in_its_second_step()), max_attempts=max_attempts, is_last=is_last)
    assert verdict is not None
    [closed] = verdict.closing
    assert isinstance(closed, RunFailed)
    assert (closed.error_type, verdict.going_on) == ("interrupted", None)
    assert "workflows.max_resume_attempts" in closed.error


def test_only_interruptions_of_the_chain_count() -> None:
    """WF-4: an answer or an operator's resume is none."""
    first, second = in_its_second_step(), in_its_second_step(2)
    failed = RunFailed(error="x", error_type="node_failed", error_class=ErrorClass.INTERNAL)
    interrupted = RunFailed(error="x", error_type="interrupted", error_class=ErrorClass.INFRASTRUCTURE)
    after_failure = recovered(past(first, failed), past(second))
    assert after_failure is not None
    assert after_failure.going_on is not None
    after_interruption = recovered(past(first, interrupted), past(second))
    assert after_interruption is not None
    assert after_interruption.going_on is None


def test_what_has_ended_waits_or_was_gone_on_with_is_left_alone() -> None:
    """WF-4"""
    done = Player(THREE, by_name).play()
    waiting = Player(sequence(person("ok")), by_name).play()
    cancelled = in_its_second_step()
    cancelled.tell(CancelRun())
    continued = in_its_second_step()
    continued.tell(FailRun(error=ORPHANED))
    assert [recovered(past(one)) for one in (done, waiting, cancelled)] == [None] * 3
    assert recovered(past(continued, RunContinued(by=RunId(UUID(int=5))))) is None


@pytest.mark.parametrize("recorded", [True, False])
def test_a_run_that_was_to_be_cancelled_is(recorded: bool) -> None:
    """CANCEL-1: whether its owner had put that on record or not."""
    player = in_its_second_step()
    if recorded:
        player.tell(RequestCancel(reason="enough"))
    asked = None if recorded else "enough"
    verdict = recover([past(player)], AFTER, max_attempts=1, is_last=False, asked=asked)
    assert verdict is not None
    last = verdict.closing[-1]
    assert isinstance(last, RunCancelled)
    assert (last.reason, verdict.going_on) == ("enough", None)


def test_only_workflows_of_the_queue_are_gone_on_with() -> None:
    """WF-4: a run bound to a connection is not."""
    player = in_its_second_step()
    assert not is_recoverable(player.run)
    created = msgspec.structs.replace(player.events[0], queue=QueueSpec())
    assert is_recoverable(fold(player.run.id, (created, *player.events[1:])))


def test_the_run_that_goes_on_has_one_attempt_less() -> None:
    """WF-4"""
    spec = QueueSpec(lane="slow", priority=3, max_attempts=3)
    assert queue_after(spec) == QueueSpec(lane="slow", priority=3, max_attempts=2)
    assert queue_after(QueueSpec()) == QueueSpec()


def test_what_its_agents_were_at_is_gone_on_from_also_if_the_next_run_is_cut_off_before_it_asks_them() -> (
    None
):
    """WF-4"""
    child = RunId(UUID(int=7))
    player = in_its_second_step()
    started = ChildRunStarted(run_id=child, agent="b", cause="b")
    verdict = recovered(past(player, started))
    assert verdict is not None
    assert verdict.going_on is not None
    assert verdict.going_on.open.interrupted == {"b": child}
    after = Player(THREE, by_name, number=2)
    opened = WorkflowOpened(definition=THREE, interrupted={"b": child})
    again = recovered(PastRun(run_id=after.run.id, events=(after.events[0], opened, after.events[2])))
    assert again is not None
    assert again.going_on is not None
    assert again.going_on.open.interrupted == {"b": child}


def test_what_a_finished_super_step_was_at_is_of_no_interest_any_more() -> None:
    """WF-2"""
    player = Player(THREE, by_name)
    events = list(player.events)
    events[1] = WorkflowOpened(definition=THREE, interrupted={"a": RunId(UUID(int=7))})
    whole = in_its_second_step().events
    verdict = recovered(PastRun(run_id=player.run.id, events=(*events[:2], *whole[2:])))
    assert verdict is not None
    assert verdict.going_on is not None
    assert verdict.going_on.open.interrupted == {}
