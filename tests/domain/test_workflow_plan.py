"""What each kind of workflow does next, by its facts alone (WF)."""

from collections.abc import Mapping

import pytest

from domain.commands import AnswerRequest
from domain.commands.workflow import FinishSuperStep, InvokeNode, RecordNodeOutput
from domain.decide import decide
from domain.errors import Conflict
from domain.events import RunAwaitingInput
from domain.events.workflow import SuperStepCompleted
from domain.refusals import AlreadyContinued, OutOfTurn
from domain.run import RunStatus
from domain.workflow.decide import AnswerNotAllowed, RequestNotFound
from domain.workflow.definition import WorkflowDefinition, WorkflowKind, WorkflowNode, WorkflowStage
from domain.workflow.plan import WorkflowLimits
from tests.domain.workflow_playing import GIVEN, Player, Say


def agent(name: str, **more: object) -> WorkflowStage:
    return WorkflowStage(name=name, agent=name, **more)  # type: ignore[arg-type]


def person(name: str, ask: str = "Is it good?", answers: tuple[str, ...] = ()) -> WorkflowStage:
    return WorkflowStage(name=name, ask=ask, answers=answers)


def of_kind(kind: WorkflowKind, *nodes: WorkflowStage, **more: object) -> WorkflowDefinition:
    return WorkflowDefinition(name="w", kind=kind, nodes=nodes, **more)  # type: ignore[arg-type]


def sequence(*nodes: WorkflowStage) -> WorkflowDefinition:
    return of_kind(WorkflowKind.SEQUENTIAL, *nodes)


def by_name(node: str, given: str, outputs: Mapping[str, str]) -> str:
    return f"{node} of ({given})"


def saying(**texts: str) -> Say:
    return lambda node, given, outputs: texts[node]


def test_a_sequence_hands_each_output_to_the_next_node() -> None:
    """WF-1"""
    player = Player(sequence(agent("a"), agent("b")), by_name).play()
    assert player.ran == [("a", GIVEN), ("b", f"a of ({GIVEN})")]
    assert player.answered_with == f"b of (a of ({GIVEN}))"


def test_a_template_names_the_input_and_any_earlier_output() -> None:
    template = "{{ input }} / {{ a }} / {{previous}}"
    player = Player(sequence(agent("a"), agent("b"), agent("c", message=template)), by_name).play()
    assert player.ran[-1] == ("c", f"{GIVEN} / a of ({GIVEN}) / b of (a of ({GIVEN}))")


def test_nodes_that_run_together_are_one_super_step_and_the_next_node_gets_all_of_it() -> None:
    """WF-2"""
    pair = WorkflowStage(name="pair", together=(agent("b"), agent("c")))
    player = Player(sequence(agent("a"), pair, agent("d")), saying(a="A", b="B", c="C", d="D")).play()
    assert player.ran[-1] == ("d", "## b\nB\n\n## c\nC")
    assert [one.step for one in player.workflow.checkpoints] == [1, 2, 3]


def test_a_join_fires_once_with_all_its_inputs() -> None:
    """WF-1"""
    join = WorkflowNode(name="sum", function="sum")
    definition = of_kind(WorkflowKind.CONCURRENT, agent("a"), agent("b"), agent("c"), join=join)
    player = Player(definition, saying(a="A", b="B", c="C", sum="ABC")).play()
    assert [node for node, _ in player.ran] == ["a", "b", "c", "sum"]
    assert player.ran[-1][1] == "## a\nA\n\n## b\nB\n\n## c\nC"
    assert player.answered_with == "ABC"


def test_without_a_join_the_answer_is_all_outputs() -> None:
    player = Player(of_kind(WorkflowKind.CONCURRENT, agent("a"), agent("b")), saying(a="A", b="B")).play()
    assert player.answered_with == "## a\nA\n\n## b\nB"


def test_outputs_stand_in_the_order_of_the_definition_whoever_was_quicker() -> None:
    player = Player(of_kind(WorkflowKind.CONCURRENT, agent("a"), agent("b")), by_name)
    player.step()
    for name in ("b", "a"):
        player.tell(InvokeNode(node=name, call_key="k"))
        player.tell(RecordNodeOutput(node=name, text=name.upper()))
    player.step()
    assert [one.node for one in player.workflow.progress.outputs] == ["a", "b"]


def test_who_is_handed_the_word_sees_what_was_said() -> None:
    """WF-1"""
    definition = of_kind(WorkflowKind.HANDOFF, agent("desk"), agent("expert"))
    player = Player(definition, saying(desk="Hard.\nHANDOFF: expert", expert="Easy.")).play()
    assert player.ran == [("desk", GIVEN), ("expert", f"{GIVEN}\n\ndesk: Hard.")]
    assert player.answered_with == "Easy."


def test_handing_over_in_circles_ends_at_the_bound_with_an_error_of_its_own() -> None:
    """WF-1"""
    definition = of_kind(WorkflowKind.HANDOFF, agent("a"), agent("b"), max_iterations=6)
    player = Player(definition, saying(a="HANDOFF: b", b="HANDOFF: a")).play()
    assert player.run.error is not None
    assert (player.run.failed_as, len(player.ran)) == ("handoff_limit_exceeded", 6)
    assert "max_iterations of workflow w" in player.run.error.message


def test_nobody_can_hand_over_to_somebody_who_is_not_there() -> None:
    definition = of_kind(WorkflowKind.HANDOFF, agent("a", to=("b",)), agent("b"), agent("c"))
    player = Player(definition, saying(a="HANDOFF: c")).play()
    assert player.run.failed_as == "invalid_handoff"


def test_a_person_answers_whoever_turned_to_them() -> None:
    definition = of_kind(WorkflowKind.HANDOFF, agent("desk"), person("boss"))
    texts = iter(["HANDOFF: boss", "Then it is settled."])
    player = Player(definition, lambda *_: next(texts)).play()
    assert player.answer("fine by me").play().answered_with == "Then it is settled."


def test_speakers_of_a_chat_take_turns_until_one_says_that_it_is_done() -> None:
    """WF-1"""
    definition = of_kind(WorkflowKind.GROUP_CHAT, agent("a"), agent("b"))
    texts = iter(["one", "two", "three\nDONE"])
    player = Player(definition, lambda *_: next(texts)).play()
    assert [node for node, _ in player.ran] == ["a", "b", "a"]
    assert player.answered_with == "three"


def test_a_manager_says_who_speaks_and_when_it_is_over() -> None:
    """WF-1"""
    manager = WorkflowNode(name="lead", agent="lead")
    definition = of_kind(WorkflowKind.GROUP_CHAT, agent("a"), agent("b"), manager=manager)
    leads = iter(["NEXT: b", "NEXT: b", "DONE"])
    player = Player(definition, lambda node, *_: next(leads) if node == "lead" else f"{node} speaks").play()
    assert [node for node, _ in player.ran] == ["lead", "b", "lead", "b", "lead"]
    assert player.answered_with == "b speaks"


def test_a_chat_without_an_end_ends_at_the_bound_with_an_error_of_its_own() -> None:
    """WF-1"""
    definition = of_kind(WorkflowKind.GROUP_CHAT, agent("a"), agent("b"), max_iterations=5)
    player = Player(definition, by_name).play()
    assert (player.run.failed_as, len(player.ran)) == ("group_chat_limit_exceeded", 5)


def test_a_workflow_with_too_many_super_steps_fails_and_names_the_setting() -> None:
    """WF-1"""
    player = Player(
        sequence(agent("a"), agent("b"), agent("c")), by_name, limits=WorkflowLimits(max_super_steps=2)
    ).play()
    assert player.run.error is not None
    assert (player.run.failed_as, len(player.ran)) == ("workflow_steps_exceeded", 2)
    assert "workflows.max_super_steps" in player.run.error.message


def test_a_workflow_that_asks_a_person_ends_and_goes_on_with_the_answer() -> None:
    """WF-3"""
    asking = Player(sequence(agent("a"), person("ok", "Good: {{ a }}?"), agent("c")), saying(a="A", c="C"))
    asking.play()
    [request] = asking.workflow.progress.pending
    assert asking.events[-1] == RunAwaitingInput(requests=(request,))
    assert (request.node, request.prompt) == ("ok", "Good: A?")
    after = asking.answer("yes").play()
    assert (after.ran, after.answered_with) == ([("c", "yes")], "C")


def test_an_answered_request_is_asked_no_more_and_the_others_stay() -> None:
    """WF-3"""
    definition = of_kind(WorkflowKind.CONCURRENT, person("x"), person("y"), agent("z"))
    first = Player(definition, by_name).play()
    second = first.answer("X", request=0).play()
    assert [one.node for one in second.workflow.progress.pending] == ["y"]
    assert second.ran == []
    third = second.answer("Y").play()
    assert third.answered_with == f"## z\nz of ({GIVEN})\n\n## x\nX\n\n## y\nY"


def test_a_request_has_one_answer() -> None:
    """WF-3: of two at once, one opens a run."""
    asking = Player(sequence(person("ok")), by_name).play()
    other = asking.answer("yes")
    with pytest.raises(AlreadyContinued) as refused:
        asking.answer("no")
    assert refused.value.by == other.run.id


def test_what_nobody_asked_cannot_be_answered() -> None:
    asking = Player(sequence(person("ok", answers=("yes", "no"))), by_name).play()
    [request] = asking.workflow.progress.pending
    with pytest.raises(RequestNotFound):
        decide(asking.run, AnswerRequest(request_id="another", answer="yes"))
    with pytest.raises(AnswerNotAllowed, match="yes, no"):
        decide(asking.run, AnswerRequest(request_id=request.id, answer="maybe"))


def test_without_checkpoints_a_workflow_that_must_wait_fails_and_says_why() -> None:
    """WF-2"""
    player = Player(sequence(person("ok")), by_name, limits=WorkflowLimits(checkpointing=False)).play()
    assert player.run.error is not None
    assert player.run.failed_as == "checkpointing_disabled"
    assert "workflows.enable_checkpointing" in player.run.error.message


def test_without_checkpoints_there_is_none_on_record() -> None:
    """WF-2"""
    player = Player(sequence(agent("a")), by_name, limits=WorkflowLimits(checkpointing=False)).play()
    assert player.run.status is RunStatus.COMPLETED
    assert player.workflow.checkpoints == ()
    assert SuperStepCompleted(step=1) in player.events


def test_a_super_step_is_not_over_before_all_its_nodes_are() -> None:
    """WF-2"""
    player = Player(of_kind(WorkflowKind.CONCURRENT, agent("a"), agent("b")), by_name)
    player.step()
    player.step()
    with pytest.raises(OutOfTurn):
        player.tell(FinishSuperStep())


def test_a_node_has_one_output() -> None:
    player = Player(of_kind(WorkflowKind.CONCURRENT, agent("a"), agent("b")), by_name)
    player.step()
    player.step()
    with pytest.raises(Conflict):
        player.tell(RecordNodeOutput(node="a", text="again"))
