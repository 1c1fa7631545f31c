"""When a conversation is summarised, what of it, and what the model is shown then (CHAIN-13)."""

import msgspec
import pytest
from hypothesis import given as for_any
from hypothesis import strategies as st

from domain import compaction
from domain import events as e
from domain.agent import AgentDefinition, Compaction
from domain.compaction import (
    Summarise,
    UseSummary,
    context_tokens,
    cut,
    digest_of,
    due,
    for_the_session,
    shown_to_the_model,
)
from domain.events.side import CompactionFailed, ContextCompacted, SessionSummarised, Summary
from domain.failure import ErrorClass
from domain.ids import Version
from domain.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
    flaw_in,
)
from domain.run import Run
from domain.session import Session
from domain.written import tokens_of, written
from tests.domain.beside import JUDGE
from tests.domain.facts import CREATED, calling, replied, says
from tests.domain.given import RUN_ID, given

ASKED = UserMessage(content="Where is order 7? " * 20)
HISTORY: tuple[Message, ...] = (UserMessage(content="Hello. " * 50), says("Good day. " * 50))


def looks(number: int) -> tuple[AssistantMessage, ToolMessage]:
    look = ToolCall(id=f"c{number}", name="look", arguments="{}")
    return says("Let me see.", look), ToolMessage(tool_call_id=look.id, content=f"It is {number}. " * 40)


def steps(count: int, tokens: int = 0) -> tuple[e.RunEvent, ...]:
    """So many steps of a turn, each with one tool call and its result."""
    facts: list[e.RunEvent] = []
    for number in range(1, count + 1):
        reply, result = looks(number)
        call = reply.tool_calls[0]
        facts += [
            calling(number),
            replied(number, reply, usage=Usage(input_tokens=tokens, output_tokens=1) if tokens else None),
            e.ToolReturned(call_id=call.id, tool=call.name, output=result.content),
        ]
    return tuple(facts)


def a_run(*facts: e.RunEvent, threshold: int = 100, keep_recent: int = 1) -> Run:
    wanted = Compaction(summarizer=JUDGE, threshold=threshold, keep_recent=keep_recent)
    agent = AgentDefinition(name="support", provider="primary", model="small", compaction=wanted)
    created = msgspec.structs.replace(CREATED, input=(ASKED,))
    return given(created, e.RunStarted(host="host-1", definition=agent), *facts).run


def summary_of(conversation: tuple[Message, ...], messages: int, text: str = "Long ago.") -> Summary:
    return Summary(messages=messages, digest=digest_of(conversation[:messages]), text=text)


def compacted(summary: Summary) -> ContextCompacted:
    return ContextCompacted(summary=summary, context_tokens=1)


FAILED = CompactionFailed(error="down", error_type="chain_exhausted", error_class=ErrorClass.PROVIDER)


class TestDue:
    def test_below_its_threshold_a_context_is_left_alone(self) -> None:
        run = a_run(threshold=10_000)
        assert due(run, HISTORY) is None

    def test_an_agent_without_a_summarizer_is_left_alone(self) -> None:
        assert due(given(CREATED, e.RunStarted(host="h", definition=JUDGED_NEVER)).run, HISTORY * 99) is None

    def test_what_is_older_than_the_last_messages_is_summarised(self) -> None:
        plan = due(a_run(), HISTORY)
        assert isinstance(plan, Summarise)
        assert (plan.messages, plan.digest) == (2, digest_of(HISTORY))
        assert plan.material == written(HISTORY)

    def test_a_step_is_kept_with_all_its_results(self) -> None:
        run = a_run(*steps(3))
        plan = due(run, HISTORY)
        assert isinstance(plan, Summarise)
        assert plan.messages == len(HISTORY) + 1 + 4

    def test_another_summary_is_of_the_first_and_what_followed(self) -> None:
        run = a_run(compacted(summary_of(HISTORY, 2)), *steps(2))
        plan = due(run, HISTORY)
        assert isinstance(plan, Summarise)
        assert plan.material.startswith("This is the summary of everything before:\n\nLong ago.")
        assert "Good day" not in plan.material
        assert plan.digest == digest_of((*HISTORY, *run.transcript)[: plan.messages])

    def test_a_summary_on_record_is_used_before_anybody_is_asked(self) -> None:
        run = a_run(*steps(2))
        conversation = (*HISTORY, *run.transcript)
        known = [summary_of(conversation, length) for length in (1, 5, 3)]
        plan = due(run, HISTORY, known)
        assert isinstance(plan, UseSummary)
        assert plan.summary.messages == 5

    def test_a_summary_of_something_else_is_not(self) -> None:
        other = summary_of((UserMessage(content="Something else."), says("Yes.")), 2)
        assert isinstance(due(a_run(), HISTORY, [other]), Summarise)

    def test_one_that_stands_for_what_is_to_be_kept_is_not(self) -> None:
        run = a_run(*steps(1))
        conversation = (*HISTORY, *run.transcript)
        plan = due(run, HISTORY, [summary_of(conversation, len(conversation))])
        assert isinstance(plan, Summarise)

    def test_what_would_gain_nothing_is_not_asked_for(self) -> None:
        """The rest is what is kept, or too little for a call."""
        run = a_run(compacted(summary_of(HISTORY, 2)), threshold=60)
        assert due(run, HISTORY) is None
        assert due(a_run(threshold=10, keep_recent=9), HISTORY) is None

    def test_after_a_failure_it_is_tried_again_before_the_next_step_and_three_times_at_most(self) -> None:
        assert due(a_run(FAILED), HISTORY) is None
        once = a_run(FAILED, *steps(1))
        assert isinstance(due(once, HISTORY), Summarise)
        often = a_run(FAILED, *steps(1), FAILED, *steps(2)[3:], FAILED, *steps(3)[6:])
        assert often.beside.context.failures == compaction.MAX_FAILURES
        assert due(often, HISTORY) is None


JUDGED_NEVER = AgentDefinition(name="support", provider="primary", model="small")


class TestTokens:
    def test_before_the_first_call_it_is_estimated(self) -> None:
        assert context_tokens(a_run(), HISTORY, 7) == 7 + tokens_of((*HISTORY, ASKED))

    def test_then_it_is_what_the_provider_counted_and_what_came_since(self) -> None:
        run = a_run(*steps(1, tokens=5000))
        assert context_tokens(run, HISTORY) == 5001 + tokens_of(run.transcript[-1:])

    def test_a_provider_that_counts_nothing_does_not_make_it_empty(self) -> None:
        run = a_run(*steps(1))
        assert context_tokens(run, HISTORY) == tokens_of((*HISTORY, *run.transcript))

    def test_after_a_compaction_the_old_count_is_void(self) -> None:
        run = a_run(*steps(1, tokens=5000), compacted(summary_of(HISTORY, 2)))
        assert context_tokens(run, HISTORY) == tokens_of(shown_to_the_model(run, HISTORY))

    def test_what_is_not_latin_is_not_taken_for_short(self) -> None:
        assert tokens_of([UserMessage(content="日本語" * 100)]) > 200


class TestShown:
    def test_system_messages_and_what_was_asked_stay_as_they_are(self) -> None:
        """The task is not retold, however old it is."""
        history = (SystemMessage(content="Be brief."), *HISTORY)
        run = a_run(*steps(2))
        conversation = (*history, *run.transcript)
        run = a_run(*steps(2), compacted(summary_of(conversation, 6)))
        shown = shown_to_the_model(run, history)
        assert shown[0] == history[0]
        assert isinstance(shown[1], UserMessage)
        assert shown[1].content.endswith("Long ago.")
        assert shown[2:] == (ASKED, *conversation[6:])

    def test_without_a_summary_it_is_all_of_it(self) -> None:
        run = a_run(*steps(1))
        assert shown_to_the_model(run, HISTORY) == (*HISTORY, *run.transcript)

    def test_a_turn_that_begins_again_is_shown_its_input(self) -> None:
        """CHAIN-6: a summary may stand for steps that are no longer part of the turn."""
        again = e.ModelFallbackUsed(
            primary=JUDGE.links[0], fallback=JUDGE.links[1], reason="down", step=3, restarted=True
        )
        past = steps(2)
        conversation = (*HISTORY, *a_run(*past).transcript)
        run = a_run(*past, compacted(summary_of(conversation, 5)), again)
        assert shown_to_the_model(run, HISTORY) == (*HISTORY, ASKED)


messages_of_a_conversation = st.lists(
    st.one_of(
        st.sampled_from([(UserMessage(content="Go on."),), (says("Well."),)]),
        st.integers(1, 3).map(
            lambda count: (
                says("", *(ToolCall(id=f"t{n}", name="look", arguments="{}") for n in range(count))),
                *(ToolMessage(tool_call_id=f"t{n}", content="seen") for n in range(count)),
            )
        ),
    ),
    max_size=12,
)


@for_any(groups=messages_of_a_conversation, keep_recent=st.integers(1, 8))
def test_wherever_it_is_cut_no_provider_would_refuse_a_half(
    groups: list[tuple[Message, ...]], keep_recent: int
) -> None:
    """CHAIN-13: a call and its results are never parted, and just as much is kept as was asked for."""
    conversation = tuple(message for group in groups for message in group)
    end = cut(conversation, keep_recent)
    assert flaw_in(conversation[:end]) is None
    assert flaw_in(conversation[end:]) is None
    assert conversation[end:] == tuple(m for group in groups[-keep_recent:] for m in group)


class TestDigest:
    def test_ids_of_calls_and_spellings_of_arguments_do_not_count(self) -> None:
        """A run that continues another makes its calls anew."""
        one = (says("", ToolCall(id="a", name="look", arguments='{"x": 1, "y": 2}')),)
        two = (says("", ToolCall(id="b", name="look", arguments='{"y":2,"x":1}')),)
        assert digest_of(one) == digest_of(two)

    @pytest.mark.parametrize(
        "other",
        [
            (UserMessage(content="No."),),
            (SystemMessage(content="Yes."),),
            (UserMessage(content="Yes."), UserMessage(content="")),
            (),
        ],
    )
    def test_everything_that_is_said_does(self, other: tuple[Message, ...]) -> None:
        assert digest_of((UserMessage(content="Yes."),)) != digest_of(other)


class TestSession:
    def test_what_stands_for_most_of_the_session_is_kept_with_it(self) -> None:
        session = Session(version=Version(2), messages=HISTORY)
        turn: tuple[Message, ...] = (ASKED, says("On Tuesday."))
        whole = (*HISTORY, *turn)
        made = [summary_of(whole, length) for length in (1, 3, 2)]
        assert for_the_session(RUN_ID, made, session, turn) == (
            SessionSummarised(run_id=RUN_ID, summary=made[1]),
        )

    def test_what_it_knows_already_is_not_said_again(self) -> None:
        known = summary_of(HISTORY, 2)
        session = Session(messages=HISTORY, summary=known)
        assert for_the_session(RUN_ID, [known], session, ()) == ()

    def test_a_summary_of_a_turn_that_came_to_nothing_is_not_the_sessions(self) -> None:
        made = [summary_of((*HISTORY, ASKED), 3)]
        assert for_the_session(RUN_ID, made, Session(messages=HISTORY), ()) == ()


def test_a_conversation_in_writing_names_who_said_what() -> None:
    call = ToolCall(id="c1", name="look", arguments='{"id": 7}')
    told = written(
        (
            SystemMessage(content="Be brief."),
            UserMessage(content="Where is it?"),
            says("I look.", call),
            ToolMessage(tool_call_id="c1", content="gone", failed=True),
        )
    )
    assert told == (
        "[system]\nBe brief.\n\n[user]\nWhere is it?\n\n[agent]\nI look.\n\n"
        '[agent calls the tool look]\n{"id": 7}\n\n[failure of the tool look]\ngone'
    )
