"""What is asked and done beside the agent's own calls, for tests that tell a run anything at all."""

from typing import Any, assert_never

from hypothesis import strategies as st

from domain.agent import AgentDefinition, Binding, Link, Loop
from domain.commands import RunCommand
from domain.commands.side import (
    BeginSideCall,
    CompactContext,
    GiveUpCompaction,
    JudgeAnswer,
    RecordSideFailure,
    RecordSideQueueing,
    RecordSideReply,
    SendBack,
    UseSideFallback,
)
from domain.compaction import Summarise, UseSummary
from domain.criterion import AskJudge, TellUnmet
from domain.events.side import SidePurpose, Summary
from domain.failure import CallFailure, ErrorClass, FailureClass, FailureKind, RunError
from domain.messages import Usage
from domain.turn import SideAction

JUDGE = Binding(provider="judge", model="j", fallbacks=(Link(provider="other", model="j"),))
LOOP = Loop(criterion="It names a day.", judge=JUDGE, max_rounds=1)
JUDGED = AgentDefinition(name="support", provider="one", model="m", loop=LOOP)
ERROR = RunError(message="no summarizer left", type="chain_exhausted", error_class=ErrorClass.PROVIDER)
DOWN = CallFailure(kind=FailureKind.STATUS, message="down", status=503)
SUMMARY = Summary(messages=1, digest="d1", text="There was a question.")
PURPOSES = st.sampled_from(SidePurpose)


def side_commands(usages: st.SearchStrategy[Usage] | None = None) -> st.SearchStrategy[RunCommand]:
    """Any of them, fitting or not."""
    longer = Summary(messages=2, digest="d2", text="There was a question, and an answer.")
    found: list[st.SearchStrategy[Any]] = [
        st.builds(BeginSideCall, purpose=PURPOSES, provider=st.just("judge"), model=st.just("j")),
        st.just(RecordSideQueueing()),
        st.builds(
            RecordSideReply,
            flaw=st.sampled_from([None, None, "no verdict"]),
            usage=usages or st.just(Usage(input_tokens=3)),
        ),
        st.just(RecordSideFailure(failure_class=FailureClass.UNAVAILABLE, failure=DOWN)),
        st.builds(
            UseSideFallback,
            purpose=PURPOSES,
            primary=st.just(JUDGE.links[0]),
            fallback=st.just(JUDGE.links[1]),
            failure_class=st.just(FailureClass.UNAVAILABLE),
            reason=st.just("down"),
        ),
        st.builds(CompactContext, summary=st.sampled_from([SUMMARY, longer]), context_tokens=st.just(9)),
        st.just(GiveUpCompaction(error=ERROR)),
        st.builds(JudgeAnswer, met=st.booleans(), reason=st.just("It names no day.")),
        st.just(SendBack(message="It names no day.")),
    ]
    return st.one_of(found)


def performed_beside(action: SideAction) -> list[RunCommand]:
    """What the actor would begin."""
    match action:
        case UseSummary(summary=summary, context_tokens=tokens):
            return [CompactContext(summary=summary, context_tokens=tokens, reused=True)]
        case Summarise():
            return [BeginSideCall(purpose=SidePurpose.COMPACTION, provider="judge", model="j")]
        case AskJudge():
            return [BeginSideCall(purpose=SidePurpose.JUDGE, provider="judge", model="j")]
        case TellUnmet(reason=reason):
            return [SendBack(message=reason)]
        case _:
            assert_never(action)
