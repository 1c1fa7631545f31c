"""A turn's way along its chain, on record (CHAIN-10, 11)."""

import msgspec
import pytest

from domain.agent import Link
from domain.chain.policy import ChainLink, ChainState, FallbackMode, LeftLink, NextLink, Retry, Stop
from domain.chain.record import commands_for
from domain.commands import (
    AnswerToolCall,
    BeginModelCall,
    CompleteRun,
    ExhaustChain,
    FailRun,
    RecordQueueing,
    RetryModelCall,
    RunCommand,
    SkipLink,
    UseFallback,
)
from domain.decide import OutOfTurn
from domain.events import (
    ChainExhausted,
    ChainLinkSkipped,
    ModelCallFailed,
    ModelCallQueued,
    ModelCallRetried,
    ModelFallbackUsed,
    RunCompleted,
    RunEvent,
    RunFailed,
    RunStarted,
    ToolAnswered,
)
from domain.failure import ErrorClass, FailureClass, RunError
from domain.ids import RunId
from domain.ledger import RecordedResult
from domain.messages import ToolMessage
from domain.turn import CallModel, GiveUp, TurnLimits, next_action
from tests.domain.facts import (
    CREATED,
    DEFINITION,
    OPENED,
    OVERLOADED,
    QUESTION,
    asked_for,
    call,
    calling,
    failed,
    invoking,
    replied,
    returned,
    says,
)
from tests.domain.given import RUN_ID, given

PRIMARY = Link(provider="primary", model="small")
BACKUP, LAST = Link(provider="backup", model="big"), Link(provider="last", model="big")
CHAINED = RunStarted(host="host-1", definition=msgspec.structs.replace(DEFINITION, fallbacks=(BACKUP, LAST)))
BEGUN = (CREATED, CHAINED)
FAILED = (*BEGUN, calling(1), failed(1))
ERROR = RunError(message="provider primary failed", type="chain_exhausted", error_class=ErrorClass.PROVIDER)
OTHER = RunError(message="nothing delivered", type="missing_deliverable", error_class=ErrorClass.INVALID)
C1 = call("c1")
SWITCH = UseFallback(fallback=BACKUP, reason="overloaded")
SWITCHED = ModelFallbackUsed(
    primary=PRIMARY, fallback=BACKUP, failure_class=FailureClass.UNAVAILABLE, reason="overloaded", step=1
)


def failed_on(link: Link, attempt: int, failure_class: FailureClass = FailureClass.UNAVAILABLE) -> RunEvent:
    return ModelCallFailed(
        step=1,
        attempt=attempt,
        provider=link.provider,
        model=link.model,
        failure_class=failure_class,
        failure=OVERLOADED,
    )


def test_a_retry_is_of_the_link_that_failed_and_for_what_it_failed() -> None:
    """CHAIN-11."""
    assert given(*FAILED).when(RetryModelCall(wait_ms=350)) == [
        ModelCallRetried(
            step=1,
            provider="primary",
            model="small",
            failure_class=FailureClass.UNAVAILABLE,
            wait_ms=350,
        )
    ]


def test_a_link_is_retried_once_in_a_step() -> None:
    """CHAIN-2."""
    again = given(*FAILED).after(RetryModelCall(wait_ms=0))
    again.refuses(RetryModelCall(wait_ms=0), OutOfTurn, "has had its retry")
    failed_again = given(*again.facts, calling(1, attempt=2), failed(1, attempt=2))
    failed_again.refuses(RetryModelCall(wait_ms=0), OutOfTurn, "has had its retry")
    assert len(failed_again.when(SWITCH)) == 1


def test_the_next_link_and_the_next_step_have_a_retry_of_their_own() -> None:
    """CHAIN-2."""
    retried = given(*FAILED).after(RetryModelCall(wait_ms=0))
    next_link = given(*retried.facts, calling(1, 2), failed(1, 2)).after(SWITCH)
    next_link = given(*next_link.facts, calling(1, 3), failed_on(BACKUP, 3))
    assert len(next_link.when(RetryModelCall(wait_ms=0))) == 1
    next_step = given(*retried.facts, calling(1, 2), replied(1, says("", C1)), invoking(C1), returned(C1, ""))
    next_step = given(*next_step.facts, calling(2), failed(2))
    assert len(next_step.when(RetryModelCall(wait_ms=0))) == 1


def test_a_switch_names_the_agents_own_link_and_the_one_that_takes_over() -> None:
    """CHAIN-11: every switch is `ModelFallbackUsed`."""
    assert given(*FAILED).when(SWITCH) == [SWITCHED]


def test_a_second_switch_names_the_agents_own_link_too() -> None:
    past = (*FAILED, SWITCHED, calling(1, attempt=2), failed_on(BACKUP, 2, FailureClass.EMPTY))
    assert given(*past).when(UseFallback(fallback=LAST, reason="empty")) == [
        ModelFallbackUsed(
            primary=PRIMARY, fallback=LAST, failure_class=FailureClass.EMPTY, reason="empty", step=1
        )
    ]


def test_a_switch_told_twice_counts_once() -> None:
    assert given(*FAILED, SWITCHED).when(SWITCH) == []
    given(*FAILED, SWITCHED).refuses(UseFallback(fallback=LAST, reason=""), OutOfTurn)


@pytest.mark.parametrize(
    "past",
    [(CREATED,), BEGUN, (*BEGUN, calling(1)), (*BEGUN, *asked_for(C1)), (*FAILED, calling(1, 2))],
    ids=["queued", "nothing failed", "call in flight", "tool call open", "called again"],
)
@pytest.mark.parametrize(
    "command",
    [RetryModelCall(wait_ms=0), SWITCH, ExhaustChain(error=ERROR)],
    ids=lambda command: type(command).__name__,
)
def test_the_chain_moves_only_from_a_failure(past: tuple[RunEvent, ...], command: RunCommand) -> None:
    given(*past).refuses(command, OutOfTurn)


def test_a_skip_is_an_event_with_its_reason() -> None:
    """CHAIN-4."""
    skipped = given(*BEGUN).after(SkipLink(link=PRIMARY, reason="no_tool_support"))
    assert skipped.facts[-1] == ChainLinkSkipped(
        step=1, provider="primary", model="small", reason="no_tool_support"
    )
    assert skipped.when(SkipLink(link=PRIMARY, reason="no_tool_support")) == []


def test_a_switch_away_from_a_skipped_link_has_no_failure_class() -> None:
    """CHAIN-11."""
    skipped = given(*BEGUN).after(SkipLink(link=PRIMARY, reason="no_tool_support"))
    assert skipped.when(UseFallback(fallback=BACKUP, reason="no_tool_support")) == [
        ModelFallbackUsed(primary=PRIMARY, fallback=BACKUP, reason="no_tool_support", step=1)
    ]


def test_the_turn_record_lists_what_failed_and_what_was_skipped_but_not_what_answered() -> None:
    """CHAIN-11."""
    moved = given(*FAILED).after(
        SkipLink(link=BACKUP, reason="no_tool_support"), UseFallback(fallback=LAST, reason="overloaded")
    )
    done = given(*moved.facts, calling(1, 2), replied(1, says("It ships today.")))
    assert done.when(CompleteRun()) == [
        RunCompleted(answer="It ships today.", fallbacks_taken=(PRIMARY, BACKUP))
    ]


def test_a_failure_that_was_retried_well_took_no_fallback() -> None:
    """CHAIN-11: the link that answered is not in the list."""
    done = given(*FAILED, calling(1, 2), replied(1, says("It ships today.")))
    assert done.when(CompleteRun()) == [RunCompleted(answer="It ships today.")]


def test_an_exhausted_chain_ends_the_run_with_the_first_cause() -> None:
    """CHAIN-10."""
    last = given(*FAILED, SWITCHED, calling(1, 2), failed_on(BACKUP, 2)).after(
        SkipLink(link=LAST, reason="no_tool_support"), ExhaustChain(error=ERROR)
    )
    assert last.facts[-1] == ChainExhausted(
        step=1, links=(PRIMARY, BACKUP, LAST), error=ERROR.message, error_class=ERROR.error_class
    )
    assert last.when(ExhaustChain(error=ERROR)) == []
    assert last.when(FailRun(error=ERROR)) == [
        RunFailed(
            error="provider primary failed",
            error_type="chain_exhausted",
            error_class=ErrorClass.PROVIDER,
            fallbacks_taken=(PRIMARY, BACKUP, LAST),
            refunded=True,
        )
    ]


def test_an_exhausted_chain_is_never_called_something_else() -> None:
    """CHAIN-10: at every call site, and never a missing deliverable."""
    last = given(*FAILED).after(ExhaustChain(error=ERROR))
    assert last.when(FailRun(error=OTHER)) == last.when(FailRun(error=ERROR))
    assert next_action(last.run, TurnLimits()) == GiveUp(error=ERROR)
    last.refuses(BeginModelCall(step=1, provider="last", model="big"), OutOfTurn, "no link is left")
    last.refuses(SWITCH, OutOfTurn, "no link is left")


def test_a_chain_that_cannot_even_begin_is_exhausted() -> None:
    """CHAIN-4."""
    none_fits = given(*BEGUN).after(
        *(SkipLink(link=link, reason="no_tool_support") for link in (PRIMARY, BACKUP, LAST)),
        ExhaustChain(error=ERROR),
    )
    assert next_action(none_fits.run, TurnLimits()) == GiveUp(error=ERROR)


@pytest.mark.parametrize(
    ("failure_class", "taken"),
    [
        (FailureClass.AUTH, (PRIMARY, BACKUP)),
        (FailureClass.CONTENT_FILTERED, (PRIMARY, BACKUP)),
        (FailureClass.INTERNAL, (PRIMARY,)),
        (FailureClass.CANCELLED, (PRIMARY,)),
    ],
)
def test_a_failed_run_lists_the_link_that_ended_it_if_that_was_at_fault(
    failure_class: FailureClass, taken: tuple[Link, ...]
) -> None:
    """CHAIN-11."""
    past = (*FAILED, SWITCHED, calling(1, 2), failed_on(BACKUP, 2, failure_class))
    [ended] = given(*past).when(FailRun(error=OTHER))
    assert isinstance(ended, RunFailed)
    assert (ended.fallbacks_taken, ended.refunded) == (taken, False)


def test_a_run_without_fallbacks_lists_none() -> None:
    """CHAIN-1."""
    [ended] = given(*OPENED, calling(1), failed(1)).when(FailRun(error=OTHER))
    assert ended == RunFailed(error=OTHER.message, error_type=OTHER.type, error_class=OTHER.error_class)


def test_a_continued_turn_keeps_what_it_has() -> None:
    """CHAIN-6."""
    past = (*BEGUN, *asked_for(C1), invoking(C1), returned(C1, "shipped"), calling(2), failed(2))
    before = given(*past).run
    after = given(*past).after(UseFallback(fallback=BACKUP, reason="")).run
    assert after.transcript == before.transcript
    assert next_action(after, TurnLimits()) == CallModel(step=2)


def test_a_restarted_turn_begins_again_from_its_input_and_counts_its_steps_on() -> None:
    """CHAIN-6."""
    past = (*BEGUN, *asked_for(C1), invoking(C1), returned(C1, "shipped"), calling(2), failed(2))
    after = given(*past).after(UseFallback(fallback=BACKUP, reason="", restarted=True)).run
    assert after.transcript == (QUESTION,)
    assert next_action(after, TurnLimits()) == CallModel(step=2)


def test_a_long_wait_for_a_place_is_told_once() -> None:
    """CONC-2."""
    waiting = given(*FAILED, calling(1, attempt=2)).after(RecordQueueing(step=1))
    assert waiting.facts[-1] == ModelCallQueued(step=1, attempt=2, provider="primary", model="small")
    assert waiting.when(RecordQueueing(step=1)) == []
    waiting.refuses(RecordQueueing(step=2), OutOfTurn)
    given(*BEGUN).refuses(RecordQueueing(step=1), OutOfTurn)


RECORDED = RecordedResult(run_id=RunId(RUN_ID), call_id="c0", output="charged", failed=True)


def test_an_answer_from_the_ledger_is_the_calls_result_and_says_whose_it_was() -> None:
    """CHAIN-6."""
    asked = given(*OPENED, *asked_for(C1)).after(AnswerToolCall(call_id="c1", result=RECORDED))
    assert asked.facts[-1] == ToolAnswered(
        call_id="c1",
        tool="get_order",
        arguments='{"id":7}',
        output="charged",
        failed=True,
        recorded_run_id=RUN_ID,
        recorded_call_id="c0",
    )
    assert asked.run.transcript[-1] == ToolMessage(tool_call_id="c1", content="charged", failed=True)
    assert asked.run.open_calls == ()
    assert asked.when(AnswerToolCall(call_id="c1", result=RECORDED)) == []


def test_a_call_whose_body_began_is_not_answered_from_the_ledger() -> None:
    """CHAIN-6: one or the other."""
    begun = given(*OPENED, *asked_for(C1), invoking(C1))
    begun.refuses(AnswerToolCall(call_id="c1", result=RECORDED), OutOfTurn, "was invoked")


def state(mode: FallbackMode = FallbackMode.CONTINUE) -> ChainState:
    links = tuple(ChainLink(link=link) for link in (PRIMARY, BACKUP, LAST))
    return ChainState(links=links, position=2, mode=mode)


LEFT = LeftLink(link=PRIMARY, reason="overloaded", failure_class=FailureClass.UNAVAILABLE, failure=OVERLOADED)
SKIPPED = LeftLink(link=BACKUP, reason="no_tool_support")


def test_what_the_chain_says_is_told_to_the_run() -> None:
    """CHAIN-11."""
    skip = SkipLink(link=BACKUP, reason="no_tool_support")
    assert commands_for(Retry(state=state(), wait_s=0.3504)) == [RetryModelCall(wait_ms=350)]
    assert commands_for(NextLink(state=state(), left=LEFT, skipped=(SKIPPED,))) == [
        skip,
        UseFallback(fallback=LAST, reason="overloaded"),
    ]
    assert commands_for(Stop(state=state(), error=ERROR, exhausted=True, skipped=(SKIPPED,))) == [
        skip,
        ExhaustChain(error=ERROR),
        FailRun(error=ERROR),
    ]
    assert commands_for(Stop(state=state(), error=OTHER, exhausted=False)) == [FailRun(error=OTHER)]


def test_a_turn_is_restarted_by_a_failure_and_not_by_a_skip() -> None:
    """CHAIN-6."""
    restart = state(FallbackMode.RESTART)
    assert commands_for(NextLink(state=restart, left=LEFT)) == [
        UseFallback(fallback=LAST, reason="overloaded", restarted=True)
    ]
    assert commands_for(NextLink(state=restart, left=SKIPPED, skipped=(SKIPPED,)))[-1] == UseFallback(
        fallback=LAST, reason="no_tool_support"
    )
