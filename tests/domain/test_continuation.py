"""Which interrupted runs are continued, and what a continuation does again (CONT)."""

from collections import Counter
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain import events as e
from domain.commands import CreateRun
from domain.continuation import Blocked, Continue, NothingToDo, PastRun, judge
from domain.events import ContinuationBlock as Block
from domain.failure import ErrorClass
from domain.ids import RunId
from domain.submission import Origin, Overrides
from tests.domain.facts import (
    CREATED,
    DEFINITION,
    OPENED,
    QUESTION,
    STARTED,
    asked_for,
    call,
    invoking,
    returned,
)
from tests.domain.given import RUN_ID
from tests.domain.playing import ORPHAN, Plan, PlannedCall, Played, begun

CREATE = CreateRun(tenant="acme", agent="support", input=(QUESTION,), session_id="s")
IN_SESSION = msgspec.structs.replace(CREATED, session_id="s")
NEXT_RUN = RunId(UUID(int=7))
REFUND = call("c1", "refund")


def orphan(*facts: e.RunEvent, after: tuple[e.RunEvent, ...] = ()) -> PastRun:
    """A run of a session that was closed because its host was gone, and what was recorded after that."""
    return PastRun(run_id=RUN_ID, events=(IN_SESSION, STARTED, *facts, ORPHAN, *after))


def blocked_by(*chain: PastRun, max_attempts: int = 1) -> Block:
    verdict = judge(chain, max_attempts)
    assert isinstance(verdict, Blocked)
    assert verdict.reason
    assert verdict.remedy
    return verdict.cause


def test_an_orphan_of_a_session_is_continued_with_all_that_it_was_given() -> None:
    """CONT-1, CONT-5: same session, same input, same parameters; the new run names the old one."""
    created = msgspec.structs.replace(
        IN_SESSION,
        parameters={"tone": "brief"},
        streaming=True,
        overrides=Overrides(instructions="Be brief."),
        origin=Origin(api="responses", echo={"metadata": {"a": "b"}}),
    )
    verdict = judge([PastRun(run_id=RUN_ID, events=(created, STARTED, ORPHAN))], 1)
    assert isinstance(verdict, Continue)
    assert verdict.command == CreateRun(
        tenant="acme",
        agent="support",
        input=(QUESTION,),
        parameters={"tone": "brief"},
        session_id="s",
        continued_from_run_id=RUN_ID,
        chain_root_run_id=RUN_ID,
        streaming=True,
        overrides=created.overrides,
        origin=created.origin,
    )


def test_a_run_that_waited_for_its_turn_is_continued_too() -> None:
    """CONT-1: it was accepted, and nothing has happened yet."""
    assert isinstance(judge([PastRun(run_id=RUN_ID, events=(IN_SESSION, ORPHAN))], 1), Continue)


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"session_id": None}, Block.NO_SESSION),
        ({"parent_run_id": NEXT_RUN, "root_run_id": NEXT_RUN, "depth": 1}, Block.CHILD_RUN),
        ({"kind": e.RunKind.WORKFLOW}, Block.WORKFLOW_RUN),
        ({"input": ()}, Block.INPUT_NOT_RECORDED),
    ],
)
def test_what_is_never_continued_has_its_own_reason(changes: dict[str, object], cause: Block) -> None:
    """CONT-4."""
    created = msgspec.structs.replace(IN_SESSION, **changes)
    assert blocked_by(PastRun(run_id=RUN_ID, events=(created, STARTED, ORPHAN))) is cause


def test_a_workflow_run_names_the_route_that_resumes_it() -> None:
    """CONT-4."""
    created = msgspec.structs.replace(IN_SESSION, kind=e.RunKind.WORKFLOW)
    verdict = judge([PastRun(run_id=RUN_ID, events=(created, STARTED, ORPHAN))], 1)
    assert isinstance(verdict, Blocked)
    assert verdict.remedy == f"POST /api/workflows/runs/{RUN_ID}/resume"


@pytest.mark.parametrize(("given_", "continued"), [({"tone": "brief"}, True), ({}, False)])
def test_a_parameter_that_must_be_given_must_have_been_recorded(
    given_: dict[str, object], continued: bool
) -> None:
    """CONT-4: never on a default that the caller did not choose."""
    created = msgspec.structs.replace(IN_SESSION, parameters=given_)
    started = e.RunStarted(
        host="h", definition=msgspec.structs.replace(DEFINITION, parameters={"tone": None, "limit": 3})
    )
    past = PastRun(run_id=RUN_ID, events=(created, started, ORPHAN))
    if continued:
        assert isinstance(judge([past], 1), Continue)
    else:
        assert blocked_by(past) is Block.PARAMETERS_NOT_RECORDED


@pytest.mark.parametrize(
    "facts",
    [
        (e.RunCancelRequested(),),
        (
            *asked_for(REFUND),
            invoking(REFUND),
            e.ToolFailed(call_id="c1", tool="refund", failure=e.ToolFailure.CANCELLED, output="stopped"),
        ),
    ],
)
def test_a_run_that_was_being_ended_is_not_taken_up_again(facts: tuple[e.RunEvent, ...]) -> None:
    """CONT-4: its cancel, or its deadline, had come before its host was gone."""
    assert blocked_by(orphan(*facts)) is Block.WAS_ENDING


def test_a_cancel_that_came_too_late_for_whoever_closed_the_run_keeps_it_from_going_on() -> None:
    """CANCEL-1: it was accepted."""
    verdict = judge([orphan()], 1, cancelled=True)
    assert isinstance(verdict, Blocked)
    assert verdict.cause is Block.WAS_ENDING


def test_a_chain_has_so_many_continuations_and_no_more() -> None:
    """CONT-1: `max_attempts` counts those of the whole chain."""
    chain = [orphan()]
    for number in range(1, 4):
        assert isinstance(judge(chain, number), Continue)
        continued = msgspec.structs.replace(IN_SESSION, continued_from_run_id=chain[-1].run_id)
        chain.append(PastRun(run_id=RunId(UUID(int=number)), events=(continued, STARTED, ORPHAN)))
        assert blocked_by(*chain, max_attempts=number) is Block.ATTEMPTS_USED_UP


def test_the_answer_to_a_question_is_no_continuation_by_interruption() -> None:
    """CONT-1: what ended in another way does not count."""
    answered = PastRun(run_id=NEXT_RUN, events=(IN_SESSION, STARTED, e.RunCancelled()))
    assert isinstance(judge([answered, orphan()], 1), Continue)


@pytest.mark.parametrize("effect", e.ToolEffect)
@pytest.mark.parametrize("safe", [False, True])
def test_a_call_that_may_have_had_its_effect_blocks_where_that_matters(
    effect: e.ToolEffect, safe: bool
) -> None:
    """CONT-3."""
    begins = msgspec.structs.replace(invoking(REFUND, effect), safe_to_repeat=safe)
    past = orphan(*asked_for(REFUND), begins)
    if safe or effect in (e.ToolEffect.READ, e.ToolEffect.WRITE):
        assert isinstance(judge([past], 1), Continue)
    else:
        verdict = judge([past], 1)
        assert isinstance(verdict, Blocked)
        assert verdict.cause is Block.OUTCOME_UNKNOWN
        assert "refund" in verdict.reason
        assert verdict.remedy.endswith(f"/api/runs/{RUN_ID}/tools/c1/resolve")


def test_a_body_that_was_left_behind_blocks_as_well() -> None:
    """CONT-3: an outcome that is on record as unknown is no result."""
    left = e.ToolOutcomeUnknown(call_id="c1", tool="refund", reason="did not stop")
    past = orphan(*asked_for(REFUND), invoking(REFUND, e.ToolEffect.EXTERNAL), left)
    assert blocked_by(past) is Block.OUTCOME_UNKNOWN


def test_a_call_that_was_asked_for_and_not_begun_blocks_nothing() -> None:
    """CONT-3: its body has not run, or its beginning would be on record (EVENT-2)."""
    other = call("c2", "charge")
    facts = (*asked_for(REFUND, other), invoking(REFUND, e.ToolEffect.DESTRUCTIVE), returned(REFUND, "done"))
    assert isinstance(judge([orphan(*facts)], 1), Continue)


def test_the_truth_about_every_uncertain_call_unblocks() -> None:
    """CONT-3: all of them, not only the first."""
    other = call("c2", "charge")
    begins = [invoking(one, e.ToolEffect.DESTRUCTIVE) for one in (REFUND, other)]
    facts: tuple[e.RunEvent, ...] = (*asked_for(REFUND, other), *begins)
    first, second = (e.ToolResolved(call_id=one.id, tool=one.name, output="done") for one in (REFUND, other))
    assert blocked_by(orphan(*facts, after=(first,))) is Block.OUTCOME_UNKNOWN
    verdict = judge([orphan(*facts, after=(first, second))], 1)
    assert isinstance(verdict, Continue)
    answer = verdict.ledger.answer("charge", '{"id": 7}')
    assert answer is not None
    assert (answer.run_id, answer.output) == (RUN_ID, "done")


@pytest.mark.parametrize(
    "events",
    [
        (*OPENED,),
        (*OPENED, e.RunCompleted(answer="It ships.")),
        (*OPENED, e.RunCancelled()),
        (*OPENED, e.RunFailed(error="no", error_type="stream_error", error_class=ErrorClass.PROVIDER)),
        (IN_SESSION, STARTED, ORPHAN, e.RunContinued(by=NEXT_RUN)),
    ],
)
def test_only_an_orphan_that_nobody_continued_is_judged(events: tuple[e.RunEvent, ...]) -> None:
    """CONT-1."""
    assert judge([PastRun(run_id=RUN_ID, events=events)], 1) == NothingToDo()


PLANNED = st.builds(
    PlannedCall,
    tool=st.sampled_from(["charge", "refund"]),
    arguments=st.sampled_from(["{}", '{"id":7}']),
    effect=st.sampled_from(e.ToolEffect),
    safe_to_repeat=st.booleans(),
)
PLANS = st.lists(st.lists(PLANNED, min_size=1, max_size=3), max_size=3)
CUTS = st.lists(st.tuples(st.booleans(), st.floats(0, 1)), min_size=1, max_size=3)
"""Whether a host dies while a tool is at work, if it can, and how far into the run."""
RISKY = (e.ToolEffect.DESTRUCTIVE, e.ToolEffect.EXTERNAL)


def one_tool_one_nature(plan: Plan) -> Plan:
    """A tool's effect is its own, whatever the draw said."""
    natures: dict[str, PlannedCall] = {}
    return [
        [msgspec.structs.replace(natures.setdefault(one.tool, one), arguments=one.arguments) for one in calls]
        for calls in plan
    ]


def in_doubt(past: PastRun) -> bool:
    """Whether a call of the run was begun, has no result, and must not be made twice: by the facts alone."""
    ended = {fact.call_id for fact in past.events if isinstance(fact, e.ToolReturned)}
    return any(
        fact.effect in RISKY and not fact.safe_to_repeat and fact.call_id not in ended
        for fact in past.events
        if isinstance(fact, e.ToolInvoking)
    )


@settings(max_examples=300)
@given(plan=PLANS.map(one_tool_one_nature), cuts=CUTS, together=st.booleans())
def test_wherever_hosts_die_nothing_is_done_twice_and_all_is_done(
    plan: Plan, cuts: list[tuple[bool, float]], together: bool
) -> None:
    """CONT-2, CONT-3, TOOL-1 (C76, C84): all in all the calls are those of a run that nobody interrupted."""
    uninterrupted = begun(Played(RunId(UUID(int=0)), CREATE, plan, together=together).facts)
    chain: list[PastRun] = []
    verdict: Continue | None = None
    for number, cut in enumerate(cuts):
        played = played_on(number, plan, verdict, together)
        check_nothing_recorded_ran_again(chain, played)
        chain.append(played.orphaned_after(place_of(cut, played.facts)))
        judged = judge(chain, len(cuts))
        if in_doubt(chain[-1]):
            assert isinstance(judged, Blocked)
            assert judged.cause is Block.OUTCOME_UNKNOWN
            return
        assert isinstance(judged, Continue)
        verdict = judged
    last = played_on(len(cuts), plan, verdict, together)
    check_nothing_recorded_ran_again(chain, last)
    made = Counter(begun(*(past.events for past in chain), last.facts))
    assert set(made) == set(uninterrupted)
    for fact in (fact for facts in (*(past.events for past in chain), last.facts) for fact in facts):
        if isinstance(fact, e.ToolInvoking) and fact.effect in RISKY and not fact.safe_to_repeat:
            assert made[fact.call_key] == 1
    assert last.run.answer == "It ships today."


def place_of(cut: tuple[bool, float], facts: list[e.RunEvent]) -> int:
    """How many facts there are before the host dies. The last one is the run's own end."""
    in_a_tool, far = cut
    places = [place for place, fact in enumerate(facts, 1) if isinstance(fact, e.ToolInvoking)]
    if not (in_a_tool and places):
        places = list(range(1, len(facts)))
    return places[round(far * (len(places) - 1))]


def played_on(number: int, plan: Plan, verdict: Continue | None, together: bool) -> Played:
    run_id = RunId(UUID(int=number))
    if verdict is None:
        return Played(run_id, CREATE, plan, together=together)
    return Played(run_id, verdict.command, plan, verdict.ledger, together=together)


def check_nothing_recorded_ran_again(chain: list[PastRun], played: Played) -> None:
    """CONT-2: a body never runs again for a call that has its result."""
    done: set[str] = set()
    for past in chain:
        keys = {fact.call_id: fact.call_key for fact in past.events if isinstance(fact, e.ToolInvoking)}
        done |= {keys[fact.call_id] for fact in past.events if isinstance(fact, e.ToolReturned)}
    assert done.isdisjoint(begun(played.facts))
