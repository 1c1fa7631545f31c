"""Whatever the workflow and wherever it is cut off: what is finished is not run again, the rest is (WF-2)."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.events.workflow import SuperStepCompleted
from domain.evolve import fold
from domain.run import RunStatus
from domain.workflow.definition import WorkflowDefinition, WorkflowKind, WorkflowNode, WorkflowStage
from tests.domain.workflow_playing import Player, Say


def _said(node: str, text: str, outputs: object) -> str:
    return f"<{node}|{len(text)}>"


@st.composite
def _sequences(draw: st.DrawFn) -> WorkflowDefinition:
    """Agents, functions, people, and groups of all of them."""
    stages = []
    for number, size in enumerate(draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))):
        members = tuple(draw(_nodes(f"n{number}-{place}")) for place in range(size))
        if size == 1:
            [node] = members
            stages.append(
                WorkflowStage(name=node.name, agent=node.agent, function=node.function, ask=node.ask)
            )
        else:
            stages.append(WorkflowStage(name=f"g{number}", together=members))
    return WorkflowDefinition(name="w", kind=WorkflowKind.SEQUENTIAL, nodes=tuple(stages))


@st.composite
def _nodes(draw: st.DrawFn, name: str) -> WorkflowNode:
    does = draw(st.sampled_from(["agent", "function", "ask"]))
    return WorkflowNode(name=name, **{does: "x"})  # type: ignore[arg-type]


@st.composite
def _concurrent(draw: st.DrawFn) -> WorkflowDefinition:
    size = draw(st.integers(1, 4))
    nodes = tuple(WorkflowStage(name=f"n{place}", agent="x") for place in range(size))
    join = draw(st.none() | st.just(WorkflowNode(name="join", function="f")))
    return WorkflowDefinition(name="w", kind=WorkflowKind.CONCURRENT, nodes=nodes, join=join)


DEFINITIONS = _sequences() | _concurrent()


def _to_its_end(player: Player) -> list[Player]:
    """All runs of the chain, with an answer for everybody who asks."""
    chain = [player.play()]
    while chain[-1].run.status is RunStatus.AWAITING_INPUT:
        chain.append(chain[-1].answer("yes").play())
    assert chain[-1].run.status is RunStatus.COMPLETED
    return chain


@given(definition=DEFINITIONS, data=st.data())
@settings(max_examples=150)
def test_after_a_crash_exactly_the_finished_super_steps_are_not_run_again(
    definition: WorkflowDefinition, data: st.DataObject
) -> None:
    """WF-2"""
    undisturbed = _to_its_end(Player(definition, _said))
    crashed = Player(definition, _said).play()
    cut_at = data.draw(st.integers(2, len(crashed.events)))
    finished = [one.step for one in crashed.events[:cut_at] if isinstance(one, SuperStepCompleted)]
    steps = [stage.members for stage in definition.nodes]
    if definition.kind is WorkflowKind.CONCURRENT:
        steps = [definition.nodes, *([(definition.join,)] if definition.join else [])]
    resumed = _to_its_end(crashed.crashed_after(cut_at))
    assert Counter(node for run in resumed for node, _ in run.ran) == Counter(
        node.name for number, members in enumerate(steps, 1) if number not in finished for node in members
    )
    assert resumed[-1].answered_with == undisturbed[-1].answered_with


@st.composite
def _conversations(draw: st.DrawFn) -> tuple[WorkflowDefinition, Say]:
    """Handoffs and chats whose speakers go by a script: the next one depends on how much was said."""
    names = [f"n{place}" for place in range(draw(st.integers(2, 4)))]
    script = draw(st.lists(st.sampled_from(names), max_size=6))
    nodes = tuple(WorkflowStage(name=name, agent=name) for name in names)
    kind = draw(st.sampled_from([WorkflowKind.HANDOFF, WorkflowKind.GROUP_CHAT]))
    bound = draw(st.integers(1, 8))

    def say(node: str, text: str, outputs: object) -> str:
        said = text.count("said")
        over = said >= len(script) or script[said] == node
        if kind is WorkflowKind.HANDOFF:
            return "said" if over else f"said\nHANDOFF: {script[said]}"
        return "said\nDONE" if over else "said"

    return WorkflowDefinition(name="w", kind=kind, nodes=nodes, max_iterations=bound), say


@given(played=_conversations(), data=st.data())
@settings(max_examples=150)
def test_a_conversation_goes_on_after_a_crash_where_it_was_and_keeps_its_bound(
    played: tuple[WorkflowDefinition, Say], data: st.DataObject
) -> None:
    """WF-1, WF-2"""
    definition, say = played
    whole = Player(definition, say).play()
    assert len(whole.ran) <= definition.max_iterations
    cut_at = data.draw(st.integers(2, len(whole.events)))
    resumed = whole.crashed_after(cut_at).play()
    finished = sum(isinstance(one, SuperStepCompleted) for one in whole.events[:cut_at])
    assert resumed.ran == whole.ran[finished:]
    assert (resumed.run.status, resumed.run.failed_as) == (whole.run.status, whole.run.failed_as)
    assert resumed.events[-1] == whole.events[-1]


@given(definition=DEFINITIONS)
@settings(max_examples=100)
def test_a_node_runs_once_and_after_all_that_it_reads(definition: WorkflowDefinition) -> None:
    """WF-1: a join fires once, with all its inputs."""
    runs = _to_its_end(Player(definition, _said))
    assert Counter(node for run in runs for node, _ in run.ran) == Counter(
        node.name for node in definition.members
    )


@given(definition=DEFINITIONS)
@settings(max_examples=50)
def test_a_fold_of_the_events_is_where_the_run_was(definition: WorkflowDefinition) -> None:
    for player in _to_its_end(Player(definition, _said)):
        assert fold(player.run.id, player.events) == player.run
