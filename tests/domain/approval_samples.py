"""One event for each golden file of an approval's facts, every field away from its default."""

from uuid import UUID

from domain.event import Event
from domain.events import (
    ApprovalDecided,
    ApprovalExpired,
    ApprovalRequested,
    ApprovalWithdrawn,
    AwaitedCall,
    CallDecision,
    RunCreated,
    RunKind,
    ToolFailed,
    ToolFailure,
)
from domain.ids import RunId
from domain.messages import AssistantMessage, ToolCall, UserMessage

_RUN, _NEXT = RunId(UUID(int=11)), RunId(UUID(int=12))
_CALL = AwaitedCall(call_id="call_1", tool="refund", arguments='{"order_id":"1042"}', effect="destructive")
_ASKED = AssistantMessage(tool_calls=(ToolCall(id="call_1", name="refund", arguments="{}"),))
_DENIED = {"call_1": CallDecision(approved=False, reason="too much")}

APPROVAL_SAMPLES: dict[str, Event] = {
    "approval.requested.v1": ApprovalRequested(
        run_id=_RUN, agent="support", session_id="conv_1", calls=(_CALL,), expires_after_s=3600.5
    ),
    "approval.decided.v1": ApprovalDecided(
        run_id=_RUN, decisions=_DENIED, opens=_NEXT, by="01a22a29-1230-77e8-b852-a5233d21163d", reason="no"
    ),
    "approval.expired.v1": ApprovalExpired(run_id=_RUN),
    "approval.withdrawn.v1": ApprovalWithdrawn(run_id=_RUN, by="a key", reason="not wanted"),
    "run.created.v1+decisions": RunCreated(
        tenant="acme",
        kind=RunKind.AGENT,
        agent="support",
        input=(UserMessage(content="refund it"), _ASKED),
        continued_from_run_id=_RUN,
        chain_root_run_id=_RUN,
        decisions=_DENIED,
    ),
    "tool.failed.v1+denied": ToolFailed(
        call_id="call_1", tool="refund", failure=ToolFailure.DENIED, output="nobody approved"
    ),
}
