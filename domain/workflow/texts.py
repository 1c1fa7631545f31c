"""What nodes read, and what their words decide: templates, conversations, and the last line of an answer."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from domain.events.workflow import NodeOutput
from domain.workflow.definition import (
    INPUT,
    PLACEHOLDER,
    PREVIOUS,
    WorkflowDefinition,
    WorkflowKind,
    WorkflowNode,
)

_HANDOFF = re.compile(r"(?:HANDOFF|NEXT):\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*")
_DONE = re.compile(r"DONE\.?\s*")


class Words(NamedTuple):
    """A text, and what its last line decided."""

    text: str
    handoff_to: str | None = None
    done: bool = False


def decided_in(definition: WorkflowDefinition, node: WorkflowNode, text: str) -> Words:
    """What the output of a node that only speaks decides: an agent's, or a person's.

    A last line of `HANDOFF: name` or `NEXT: name` gives the word to that node, one of `DONE` ends a chat. In
    a sequence or a concurrent workflow nobody decides anything.
    """
    if definition.kind not in (WorkflowKind.HANDOFF, WorkflowKind.GROUP_CHAT):
        return Words(text)
    head, _, last = text.rstrip().rpartition("\n")
    if match := _HANDOFF.fullmatch(last.strip()):
        chooses = definition.kind is WorkflowKind.HANDOFF or node == definition.manager
        return Words(head.rstrip(), handoff_to=match[1]) if chooses else Words(text)
    if definition.kind is WorkflowKind.GROUP_CHAT and _DONE.fullmatch(last.strip()):
        return Words(head.rstrip(), done=True)
    return Words(text)


def rules_for(definition: WorkflowDefinition, node: WorkflowNode) -> str | None:
    """What an agent has to know of the others; None where there is nothing to decide."""
    if definition.kind is WorkflowKind.HANDOFF:
        others = ", ".join(targets_of(definition, node))
        return (
            f"You are {node.name}. If somebody else should go on, end your answer with a line of its own:"
            f" HANDOFF: and the name. There are: {others}. Without such a line your answer is the last word."
        )
    if definition.kind is not WorkflowKind.GROUP_CHAT:
        return None
    if node == definition.manager:
        speakers = ", ".join(stage.name for stage in definition.nodes)
        return (
            f"You lead a conversation between {speakers}. End your answer with a line of its own: NEXT: and"
            " the name of who is to speak, or DONE when the conversation has come to its end."
        )
    return (
        f"You are {node.name}, in a conversation with others. When all is said, end your answer with a line"
        " of its own: DONE."
    )


def targets_of(definition: WorkflowDefinition, node: WorkflowNode) -> tuple[str, ...]:
    """Whom the node may hand over to."""
    return node.to or tuple(stage.name for stage in definition.nodes if stage.name != node.name)


def text_for(
    definition: WorkflowDefinition, node: WorkflowNode, given: str, outputs: Sequence[NodeOutput]
) -> str:
    """What a node is given to read. `given` is the workflow's own input."""
    previous = previous_text(definition, given, outputs)
    if node.template is None:
        return previous
    values = {INPUT: given, PREVIOUS: previous, **{output.node: output.text for output in outputs}}
    return PLACEHOLDER.sub(lambda match: values.get(match[1], match[0]), node.template)


def previous_text(definition: WorkflowDefinition, given: str, outputs: Sequence[NodeOutput]) -> str:
    """The output of the stage before; where nodes talk to each other, all that was said."""
    if not outputs:
        return given
    if definition.kind in (WorkflowKind.HANDOFF, WorkflowKind.GROUP_CHAT):
        said = (f"{output.node}: {output.text}" for output in outputs if output.text)
        return "\n\n".join((given, *said))
    last = outputs[-1].step
    return in_one({output.node: output.text for output in outputs if output.step == last})


def in_one(texts: Mapping[str, str]) -> str:
    """Several outputs as one text; a single one as it is."""
    if len(texts) == 1:
        return next(iter(texts.values()))
    return "\n\n".join(f"## {name}\n{text}" for name, text in texts.items())
