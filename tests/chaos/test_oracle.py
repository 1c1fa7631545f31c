"""The oracle sees each kind of broken promise, and none where all were kept."""

from uuid import UUID

import msgspec
import pytest

from domain import events as e
from domain.ids import RunId
from ops.chaos.evidence import Evidence
from ops.chaos.oracle import effects, log, outcomes, sessions, submissions
from ops.chaos.oracle.audit import CHECKS, Check
from ops.chaos.received import Answer, Received
from ops.chaos.workload import Submission, Way
from tests.chaos.forged import (
    ASKED,
    BODIES,
    CALLED,
    COMPLETED,
    CREATED,
    INVOKING,
    ORPHANED,
    OTHER,
    OWNER,
    PLAN,
    REPLIED,
    RETURNED,
    RUN,
    STARTED,
    STRANGER,
    TURN,
    WHOLE,
    body,
    evidence,
    frame,
    rows,
    second,
    with_run,
)


def told(*frames: dict[str, object], answers: tuple[Answer, ...] = ()) -> Received:
    received = Received()
    received.told_of(RUN, PLAN.number)
    for one in frames:
        received.frame(RUN, one)
    received.answers += answers
    return received


def answer(body: object, status: int = 200, key: str | None = None) -> Answer:
    return Answer(number=7, status=status, run_id=RUN, body=msgspec.json.encode(body), key=key)


def continued(*events: e.Event, by: UUID = OTHER, before: UUID = RUN) -> Evidence:
    """A run that was orphaned, and another one after it."""
    first = (CREATED, STARTED, CALLED, REPLIED, INVOKING, ORPHANED, e.RunContinued(by=RunId(by)))
    created = msgspec.structs.replace(CREATED, continued_from_run_id=RunId(before))
    return evidence(
        streams={RUN: rows(first), OTHER: rows((created, STARTED, *events), OTHER, position=100)},
        calls=(),
    )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_history_that_keeps_every_promise_is_clean(check: Check) -> None:
    whole = evidence(received=told(*map(frame, rows(WHOLE))))
    assert list(check(whole)) == []


def test_an_event_that_was_told_and_is_not_in_the_log() -> None:
    missing = with_run(*WHOLE[:-1], received=told(*map(frame, rows(WHOLE))))
    [found] = log.acknowledged(missing)
    assert (found.run_id, found.what[:13]) == (RUN, "event 7 was t")


def test_an_event_that_was_told_otherwise() -> None:
    shown = frame(rows(WHOLE)[-1])
    shown["data"]["answer"] = "Something else."
    assert len(list(log.acknowledged(evidence(received=told(shown))))) == 1


def test_a_run_that_was_told_of_and_is_not_in_the_log() -> None:
    assert len(list(log.acknowledged(evidence(streams={}, received=told())))) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        answer({"status": "Completed", "answer": "Something else."}),
        answer({"run": {"status": "Failed"}}, status=502),
        answer({"status": "AwaitingApproval", "answer": None}, status=202),
    ],
)
def test_an_end_that_was_told_otherwise(wrong: Answer) -> None:
    assert len(list(log.acknowledged(evidence(received=told(answers=(wrong,)))))) == 1
    right = answer({"status": "Completed", "answer": COMPLETED.answer})
    assert list(log.acknowledged(evidence(received=told(answers=(right,))))) == []


def test_a_stream_with_a_gap_and_one_out_of_order() -> None:
    whole = rows(WHOLE)
    assert len(list(log.streams(evidence(streams={RUN: whole[:2] + whole[3:]})))) == 1
    early = msgspec.structs.replace(whole[3].recorded, position=1)
    moved = (*whole[:3], msgspec.structs.replace(whole[3], recorded=early), *whole[4:])
    assert len(list(log.streams(evidence(streams={RUN: moved})))) == 1


def test_two_hosts_that_work_on_one_run() -> None:
    """EVENT-3"""
    both = [OWNER] * 3 + [STRANGER] + [OWNER] * 3
    [found] = log.writers(with_run(*WHOLE, writers=both))
    assert "event 4, ModelReplied" in found.what


def test_another_host_may_close_a_run_and_say_what_follows() -> None:
    blocked = e.RunContinuationBlocked(cause=e.ContinuationBlock.OUTCOME_UNKNOWN, reason="r", remedy="r")
    closed = with_run(*WHOLE[:5], ORPHANED, blocked, writers=[OWNER] * 5 + [STRANGER] * 2)
    assert list(log.writers(closed)) == []


def test_another_host_may_not_complete_a_run() -> None:
    assert len(list(log.writers(with_run(*WHOLE, writers=[OWNER] * 6 + [STRANGER])))) == 1


def test_a_run_that_goes_on_after_its_end() -> None:
    assert len(list(log.writers(with_run(*WHOLE, COMPLETED)))) == 1
    twice = [e.RunContinued(by=RunId(OTHER))] * 2
    assert len(list(log.writers(with_run(*WHOLE, *twice)))) == 1


def test_a_run_without_an_end() -> None:
    assert len(list(log.ended(with_run(*WHOLE[:-1])))) == 1


def test_a_body_that_nothing_on_record_allows() -> None:
    """EVENT-2"""
    unrecorded = with_run(CREATED, STARTED, CALLED, REPLIED)
    assert len(list(effects.bodies(unrecorded))) == 1
    early = evidence(bodies=(body("began", 4.9), body("ended", 5.5)))
    assert len(list(effects.bodies(early))) == 1
    assert len(list(effects.bodies(evidence(streams={})))) == 1


def test_a_body_that_begins_after_its_run_was_closed() -> None:
    """EVENT-3"""
    closed = with_run(*WHOLE[:5], ORPHANED, bodies=(body("began", 6.1),))
    [found] = effects.bodies(closed)
    assert "after the run's end" in found.what


def test_a_call_with_two_bodies() -> None:
    assert len(list(effects.bodies(evidence(bodies=(*BODIES, body("began", 5.3)))))) == 1


def test_a_call_that_is_repeated_by_the_run_that_continues() -> None:
    """CONT-3"""
    again = (CALLED, REPLIED, INVOKING, RETURNED, COMPLETED)
    repeated = continued(*again)
    bodies = (*BODIES, body("began", 5.2, run_id=OTHER))
    [found] = effects.keys(msgspec.structs.replace(repeated, bodies=bodies))
    assert "had 2 bodies" in found.what


def test_a_call_that_is_safe_to_repeat_may_be() -> None:
    harmless = msgspec.structs.replace(INVOKING, safe_to_repeat=True)
    repeated = evidence(
        streams={
            RUN: rows((CREATED, STARTED, CALLED, REPLIED, harmless)),
            OTHER: rows((CREATED, STARTED, CALLED, REPLIED, harmless), OTHER),
        },
        bodies=(body("began", 5.1), body("began", 5.1, run_id=OTHER)),
    )
    assert list(effects.keys(repeated)) == []


def test_a_result_that_no_body_came_to() -> None:
    assert len(list(effects.results(evidence(bodies=(body("began", 5.1),))))) == 1


def test_a_model_that_is_called_for_a_run_that_is_over() -> None:
    """EVENT-3"""
    late = msgspec.structs.replace(ASKED, at=second(8))
    assert len(list(effects.model_calls(evidence(calls=(ASKED, late))))) == 1


def test_a_model_that_is_called_by_somebody_else() -> None:
    stranger = msgspec.structs.replace(ASKED, caller="host1-1")
    assert len(list(effects.model_calls(evidence(calls=(stranger,))))) == 1


def test_a_submission_that_became_two_runs() -> None:
    """IDEM-4"""
    twice = {RUN: rows(WHOLE), OTHER: rows(WHOLE, OTHER, position=100)}
    assert len(list(submissions.once(evidence(streams=twice)))) == 1


def test_a_key_is_free_again_after_a_failure_and_only_then() -> None:
    """IDEM-5"""
    keyed = {7: Submission(at_s=0, way=Way.KEYED, plan=PLAN, host=0, key="k")}
    failed = rows((CREATED, STARTED, ORPHANED))
    later = tuple(
        msgspec.structs.replace(
            row, recorded=msgspec.structs.replace(row.recorded, at=row.at.replace(minute=1))
        )
        for row in rows(WHOLE, OTHER)
    )
    freed = evidence(streams={RUN: failed, OTHER: later}, submissions=keyed)
    assert list(submissions.once(freed)) == []
    kept = evidence(streams={RUN: rows(WHOLE), OTHER: later}, submissions=keyed)
    assert len(list(submissions.once(kept))) == 1


def test_a_key_that_is_answered_in_two_ways() -> None:
    """IDEM-3"""
    one, other = answer({"a": 1}, key="k"), answer({"a": 2}, key="k")
    assert len(list(submissions.answers(evidence(received=told(answers=(one, other)))))) == 1
    assert list(submissions.answers(evidence(received=told(answers=(one, one))))) == []


def test_an_orphan_that_nobody_says_anything_of() -> None:
    """CONT-3"""
    assert len(list(outcomes.continuations(with_run(*WHOLE[:5], ORPHANED)))) == 1


def test_runs_that_continue_one_another_name_each_other() -> None:
    """CONT-5"""
    assert list(outcomes.continuations(continued(COMPLETED))) == []
    assert len(list(outcomes.continuations(continued(COMPLETED, by=UUID(int=3))))) == 2
    assert len(list(outcomes.continuations(continued(COMPLETED, before=UUID(int=3))))) == 2


def test_a_turn_that_is_in_its_conversation_twice_or_not_at_all() -> None:
    assert len(list(sessions.turns(evidence(streams={RUN: rows(WHOLE)})))) == 1
    twice = {RUN: rows(WHOLE), UUID(int=50): TURN, UUID(int=51): TURN}
    assert len(list(sessions.turns(evidence(streams=twice)))) == 1
    failed = {RUN: rows((*WHOLE[:5], ORPHANED)), UUID(int=50): TURN}
    assert len(list(sessions.turns(evidence(streams=failed)))) == 1


def test_what_two_clients_were_told_of_one_event_is_the_same() -> None:
    received = told(frame(rows(WHOLE)[0]))
    received.frame(RUN, {**frame(rows(WHOLE)[0]), "type": "RunStarted"})
    assert [found.rule for found in received.violations] == ["acknowledged"]
