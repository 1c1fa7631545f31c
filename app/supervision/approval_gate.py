"""Which calls wait for a person, and which were refused by one (TOOL-2)."""

from collections.abc import Callable, Sequence

from app.supervision.agent_tools import AgentTool
from app.supervision.live_run import LiveRun
from app.tools.arguments import InvalidArguments, read_arguments
from app.tools.registry import Tool
from domain.commands import AwaitApproval
from domain.events import AwaitedCall, CallDecision, ToolEffect
from domain.messages import ToolCall
from domain.replay import ReplayTools
from domain.run import OpenCall

NOBODY_TO_ASK = (
    "This call has to be approved by a person, and nobody can be asked from a run below another one, or from "
    "a replay. It was not made."
)


class ApprovalGate:
    """Stands before the tool calls of one run. `find` is what the run's agent may call."""

    def __init__(self, live: LiveRun, find: Callable[[str], Tool | AgentTool | None]) -> None:
        self._live = live
        self._find = find

    def is_shut(self, one: OpenCall) -> bool:
        """Whether the call waits for a person: its tool asks for one, and nobody has said anything yet."""
        return one.decision is None and self._may_ask and self._asks(one.call)

    def denial_of(self, call: ToolCall) -> str | None:
        """Why the call is not to be made, for the model to read; None if nobody is against it."""
        decision = self._decision_on(call)
        if decision is not None and not decision.approved:
            return denied(decision)
        if decision is not None and not self._is_live_replay:
            return None
        return NOBODY_TO_ASK if not self._may_ask and self._asks(call) else None

    def ending_for(self, calls: Sequence[ToolCall]) -> AwaitApproval:
        """How the run ends that has to wait for these."""
        return AwaitApproval(calls=tuple(map(self._awaited, calls)))

    def _asks(self, call: ToolCall) -> bool:
        """A call that gets the result of an equal one of its turn has no effect of its own (CHAIN-6)."""
        tool = self._find(call.name)
        if not isinstance(tool, Tool) or not tool.requires_approval or self._begins_no_bodies:
            return False
        harmless = tool.safe_to_repeat or tool.effect is ToolEffect.READ
        if self._live.ledger.answer(call.name, call.arguments, harmless=harmless) is not None:
            return False
        return _can_be_made(tool, call)

    def _decision_on(self, call: ToolCall) -> CallDecision | None:
        return next((one.decision for one in self._live.run.open_calls if one.call.id == call.id), None)

    def _awaited(self, call: ToolCall) -> AwaitedCall:
        tool = self._find(call.name)
        effect = ToolEffect.EXTERNAL if tool is None else tool.effect
        return AwaitedCall(call_id=call.id, tool=call.name, arguments=call.arguments, effect=effect)

    @property
    def _may_ask(self) -> bool:
        """A run that another one waits for does not wait for people, and a replay bothers nobody."""
        created = self._live.run.created
        return created is not None and created.parent_run_id is None and created.replay is None

    @property
    def _begins_no_bodies(self) -> bool:
        created = self._live.run.created
        replay = created.replay if created else None
        return replay is not None and replay.tools is not ReplayTools.LIVE

    @property
    def _is_live_replay(self) -> bool:
        """It does for the second time what somebody approved of once."""
        created = self._live.run.created
        return created is not None and created.replay is not None and not self._begins_no_bodies


def _can_be_made(tool: Tool, call: ToolCall) -> bool:
    """Nobody is asked about a call that fails for its arguments: the model is told that at once."""
    try:
        read_arguments(call.arguments, tool.signature.arguments)
    except InvalidArguments:
        return False
    return True


def denied(decision: CallDecision) -> str:
    """What the model reads of a call that a person was against."""
    told = "A person did not approve of this call, so it was not made."
    return f"{told} Their reason: {decision.reason}" if decision.reason else told
