"""A run's beginning and its end."""

from uuid import UUID

import pytest

from domain.commands import (
    BeginModelCall,
    CancelRun,
    CompleteRun,
    CreateRun,
    FailRun,
    RecordText,
    RequestCancel,
    RunCommand,
)
from domain.decide import InvalidInput, OutOfTurn, RunAlreadyEnded
from domain.events import (
    FinishReason,
    RunCancelled,
    RunCancelRequested,
    RunCompleted,
    RunCreated,
    RunEvent,
    RunFailed,
    RunKind,
)
from domain.failure import ErrorClass, RunError
from domain.ids import RunId
from domain.messages import ToolMessage, UserMessage
from domain.run import RunStatus
from tests.domain.facts import (
    CREATE,
    CREATED,
    OPENED,
    QUESTION,
    START,
    STARTED,
    asked_for,
    call,
    calling,
    failed,
    replied,
    says,
)
from tests.domain.given import given

ANSWERED = (*OPENED, calling(1), replied(1, says("It ships today.")))
ERROR = RunError(message="no provider left", type="provider_unavailable", error_class=ErrorClass.PROVIDER)
ENDINGS: list[RunEvent] = [
    RunCompleted(answer="It ships today."),
    RunFailed(error="no provider left", error_type="orphaned", error_class=ErrorClass.INFRASTRUCTURE),
    RunCancelled(),
]


def test_a_created_run_keeps_all_that_a_continuation_needs() -> None:
    parent = RunId(UUID(int=7))
    command = CreateRun(
        tenant="acme",
        kind=RunKind.WORKFLOW,
        agent="support",
        input=(QUESTION,),
        parameters={"tone": "brief"},
        session_id="s-1",
        root_run_id=parent,
        parent_run_id=parent,
        depth=1,
        continued_from_run_id=parent,
        streaming=True,
    )
    facts = given().when(command)
    assert facts == [
        RunCreated(
            tenant="acme",
            kind=RunKind.WORKFLOW,
            agent="support",
            input=(QUESTION,),
            parameters={"tone": "brief"},
            session_id="s-1",
            root_run_id=parent,
            parent_run_id=parent,
            depth=1,
            continued_from_run_id=parent,
            streaming=True,
        )
    ]


def test_a_run_is_created_once() -> None:
    given(CREATED).refuses(CREATE, OutOfTurn, "exists already")


def test_nothing_happens_to_a_run_that_was_not_created() -> None:
    given().refuses(START, OutOfTurn, "has not been created")


def test_a_run_without_a_message_is_refused() -> None:
    given().refuses(CreateRun(tenant="acme", agent="support", input=()), InvalidInput, "at least one message")


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ((says("", call("c1")),), "'c1' has no result"),
        ((says("", call("c1")), UserMessage(content="well?")), "comes before the result of tool call 'c1'"),
        ((ToolMessage(tool_call_id="c9", content="7"),), r"messages\[0\] is the result of no tool call"),
        ((says("", call("c1"), call("c1")),), "two tool calls of one id"),
    ],
)
def test_an_input_that_no_provider_would_take_is_refused(messages: tuple[UserMessage, ...], why: str) -> None:
    """Once in a session it would fail every later run of that session."""
    given().refuses(CreateRun(tenant="acme", agent="support", input=messages), InvalidInput, why)


def test_an_input_may_hold_a_finished_tool_call() -> None:
    messages = (QUESTION, says("", call("c1")), ToolMessage(tool_call_id="c1", content="shipped"))
    facts = given().when(CreateRun(tenant="acme", agent="support", input=messages))
    assert facts == [RunCreated(tenant="acme", kind=RunKind.AGENT, agent="support", input=messages)]


def test_a_run_starts_once() -> None:
    assert given(CREATED).when(START) == [STARTED]
    given(*OPENED).refuses(START, OutOfTurn, "already Running")


def test_the_answer_is_the_last_reply() -> None:
    assert given(*ANSWERED).when(CompleteRun()) == [RunCompleted(answer="It ships today.")]


def test_the_answer_says_why_the_model_stopped() -> None:
    cut = replied(1, says("It ships"), finish=FinishReason.LENGTH)
    facts = given(*OPENED, calling(1), cut).when(CompleteRun())
    assert facts == [RunCompleted(answer="It ships", finish=FinishReason.LENGTH)]


@pytest.mark.parametrize(
    "past",
    [
        (CREATED,),
        OPENED,
        (*OPENED, calling(1)),
        (*OPENED, *asked_for(call("c1"))),
        (*OPENED, calling(1), replied(1, says("I will look.", call("c1")))),
        (*ANSWERED, calling(2)),
        (*ANSWERED, calling(2), failed(2)),
    ],
    ids=[
        "queued",
        "no reply",
        "call in flight",
        "tool call open",
        "tool call open after some words",
        "a further call in flight",
        "it failed",
    ],
)
def test_an_unfinished_turn_is_not_completed(past: tuple[RunEvent, ...]) -> None:
    """CHAIN-10: an earlier reply never papers over a later failure."""
    given(*past).refuses(CompleteRun(), OutOfTurn)


def test_an_input_that_ends_in_an_assistants_words_is_not_an_answer() -> None:
    created = RunCreated(tenant="acme", kind=RunKind.AGENT, agent="support", input=(QUESTION, says("It is")))
    given(created, STARTED).refuses(CompleteRun(), OutOfTurn, "there is no answer")


def test_a_failed_run_tells_the_first_cause() -> None:
    told = RunFailed(
        error="no provider left", error_type="provider_unavailable", error_class=ErrorClass.PROVIDER
    )
    assert given(*OPENED).when(FailRun(error=ERROR)) == [told]
    assert given(CREATED).when(FailRun(error=ERROR)) == [told]


def test_a_cancel_is_asked_for_once_and_ends_once() -> None:
    asked = given(*OPENED, calling(1)).after(RequestCancel(reason="too slow"))
    assert asked.facts[-1] == RunCancelRequested(reason="too slow")
    assert asked.when(RequestCancel(reason="again")) == []
    [cancelled] = asked.when(CancelRun(reason="too slow"))
    assert isinstance(cancelled, RunCancelled)
    assert cancelled.reason == "too slow"


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: type(ending).__name__)
@pytest.mark.parametrize(
    "command",
    [
        START,
        BeginModelCall(step=2, provider="primary", model="small"),
        RecordText(step=1, text="more"),
        RequestCancel(),
        CompleteRun(),
        FailRun(error=ERROR),
        CancelRun(),
    ],
    ids=lambda command: type(command).__name__,
)
def test_a_closed_run_is_never_rewritten(ending: RunEvent, command: RunCommand) -> None:
    given(*ANSWERED, ending).refuses(command, RunAlreadyEnded, "has already ended")


def test_the_error_of_a_closed_run_names_its_status() -> None:
    with pytest.raises(RunAlreadyEnded) as caught:
        given(*ANSWERED, RunCancelled()).when(CompleteRun())
    assert caught.value.status is RunStatus.CANCELLED
