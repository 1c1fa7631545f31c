"""One event for each golden file, every field away from its default.

A name is a topic, or `topic+what` for fields that the topic got later: the first file of a topic stays as it
is. `python -m tests.domain.samples` writes the files that do not exist yet, and never one that does.
"""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import msgspec

from domain.agent import (
    AgentDefinition,
    Binding,
    Compaction,
    FallbackMode,
    Link,
    Loop,
    ModelOptions,
    StreamRecovery,
)
from domain.codec import Codec
from domain.events import (
    AwaitedCall,
    BatchCreated,
    ChainExhausted,
    ChainLinkSkipped,
    ChildRunStarted,
    ContinuationBlock,
    Event,
    FinishReason,
    IdempotencyKeyCompleted,
    IdempotencyKeyReleased,
    IdempotencyKeyReserved,
    InputRequest,
    JobAttemptsExhausted,
    ModelCallFailed,
    ModelCallQueued,
    ModelCallRetried,
    ModelCallStarted,
    ModelFallbackUsed,
    ModelReplied,
    RunAwaitingApproval,
    RunAwaitingInput,
    RunCancelled,
    RunCancelRequested,
    RunCompleted,
    RunContinuationBlocked,
    RunContinued,
    RunCreated,
    RunFailed,
    RunKind,
    RunStarted,
    RunWaitEnded,
    ScheduleDefined,
    ScheduleFired,
    SchedulePaused,
    ScheduleRemoved,
    ScheduleResumed,
    ScheduleSkipped,
    ScheduleTriggered,
    SessionOpened,
    SessionTurnAdded,
    SessionTurnBegun,
    SessionTurnQueued,
    StoppedCall,
    TextDelta,
    ToolAnswered,
    ToolEffect,
    ToolFailed,
    ToolFailure,
    ToolInvoking,
    ToolOutcomeUnknown,
    ToolResolved,
    ToolReturned,
    TurnNudged,
    UsageReported,
    WaitOver,
)
from domain.events.side import (
    AnswerSentBack,
    CompactionFailed,
    ContextCompacted,
    CriterionJudged,
    SessionSummarised,
    SideCallFailed,
    SideCallQueued,
    SideCallReplied,
    SideCallStarted,
    SideFallbackUsed,
    SidePurpose,
    Summary,
)
from domain.failure import CallFailure, ErrorClass, FailureClass, FailureKind
from domain.ids import RunId
from domain.messages import (
    AssistantMessage,
    ProviderBlocks,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
    UserMessage,
)
from domain.queueing import (
    BatchItem,
    MissedFirings,
    QueueSpec,
    ScheduleDefinition,
    ScheduleFiring,
    TriggerDelivery,
)
from domain.replay import Replay, ReplayTools
from domain.submission import Origin, Overrides
from tests.domain.agent_samples import AGENT_SAMPLES
from tests.domain.approval_samples import APPROVAL_SAMPLES
from tests.domain.workflow_samples import WORKFLOW_SAMPLES

_ROOT, _PARENT, _BEFORE = (RunId(UUID(int=number)) for number in (1, 2, 3))
_PRIMARY, _BACKUP = Link(provider="primary", model="small"), Link(provider="backup", model="big")
_CALL = ToolCall(id="call_1", name="get_order", arguments='{"id": 7}')
_REPLY = AssistantMessage(
    content="Ich sehe nach \u2026",
    tool_calls=(_CALL,),
    provider_blocks=ProviderBlocks(
        provider="primary", blocks=(msgspec.Raw(b'{"type":"thinking","signature":"c2ln"}'),)
    ),
)
_RESULT = ToolMessage(tool_call_id="call_1", content="no such order", failed=True)
_QUESTION = UserMessage(content="Where is order 7?")
_CONVERSATION = (SystemMessage(content="Be brief."), _QUESTION, _REPLY, _RESULT)
_USAGE = Usage(input_tokens=120, output_tokens=30, cached_input_tokens=100, reasoning_tokens=8)
_DEFINITION = AgentDefinition(
    name="support",
    instructions="Answer briefly.",
    description="Helps customers.",
    provider="primary",
    model="small",
    fallbacks=(Link(provider="backup", model="big"),),
    tools=("get_order",),
    options=ModelOptions(temperature=0.5, top_p=0.9, max_output_tokens=256, stop=("END",), seed=42),
    parameters={"tone": "brief"},
    provider_settings={"service_tier": "flex"},
)
_ASKS_OTHERS = AgentDefinition(name="lead", provider="primary", model="small", agents=("researcher",))
_DELIVERS = AgentDefinition(
    name="support",
    provider="primary",
    model="small",
    fallback_mode=FallbackMode.RESTART,
    stream_recovery=StreamRecovery.CONTINUE,
    cache_replies=True,
    deliverable_tool="get_order",
    response_schema={"type": "object"},
)
_BESIDE = Binding(
    provider="primary",
    model="tiny",
    fallbacks=(_BACKUP,),
    options=ModelOptions(max_output_tokens=512),
)
_COMPACTS = AgentDefinition(
    name="support",
    provider="primary",
    model="small",
    compaction=Compaction(summarizer=_BESIDE, threshold=60000, keep_recent=4),
    loop=Loop(criterion="It names a day.", judge=_BESIDE, max_rounds=2),
)
_SUMMARY = Summary(messages=12, digest="9f86d081884c7d65", text="Order 7 \u2708 was asked about.")
_BOUNDED = AgentDefinition(name="support", provider="primary", model="small", max_length_continuations=0)
_DUE, _LATER = datetime(2026, 3, 29, 1, 30, tzinfo=UTC), datetime(2026, 3, 30, 0, 30, tzinfo=UTC)
_NIGHTLY = ScheduleDefinition(
    name="nightly",
    cron="30 2 * * *",
    time_zone="Europe/Berlin",
    agent="support",
    input=_CONVERSATION,
    parameters={"tone": "brief"},
    session_id="s-1",
    missed=MissedFirings.SKIP,
    queue=QueueSpec(lane="bulk", priority=-3, max_attempts=2),
)
_FAILURE = CallFailure(
    kind=FailureKind.STATUS,
    message="Rate limit reached",
    status=429,
    code="rate_limit_exceeded",
    retry_after_s=1.5,
    content_delivered=True,
)

SAMPLES: dict[str, Event] = {
    "run.created.v1": RunCreated(
        tenant="acme",
        kind=RunKind.AGENT,
        agent="support",
        input=_CONVERSATION,
        parameters={"tone": "brief", "limit": 3},
        session_id="s-1",
        root_run_id=_ROOT,
        parent_run_id=_PARENT,
        depth=1,
        continued_from_run_id=_BEFORE,
        streaming=True,
    ),
    "run.created.v1+asked": RunCreated(
        tenant="acme",
        kind=RunKind.AGENT,
        agent="support",
        input=_CONVERSATION,
        overrides=Overrides(
            options=ModelOptions(temperature=0.5),
            response_schema={"type": "object"},
            instructions="In German.",
        ),
        origin=Origin(api="openai.responses", echo={"store": True}),
    ),
    "run.created.v1+queue": RunCreated(
        tenant="acme",
        kind=RunKind.AGENT,
        agent="support",
        input=_CONVERSATION,
        queue=QueueSpec(
            lane="bulk", priority=5, max_attempts=3, source=BatchItem(batch_id=UUID(int=4), number=7)
        ),
    ),
    "run.created.v1+schedule": RunCreated(
        tenant="acme",
        kind=RunKind.AGENT,
        agent="support",
        input=_CONVERSATION,
        queue=QueueSpec(source=ScheduleFiring(schedule="nightly", due=_DUE)),
    ),
    "run.created.v1+trigger": RunCreated(
        tenant="acme",
        kind=RunKind.AGENT,
        agent="support",
        input=_CONVERSATION,
        queue=QueueSpec(source=TriggerDelivery(trigger="orders", delivery="msg_7")),
    ),
    "run.started.v1": RunStarted(host="host-1", definition=_DEFINITION, session_version=4),
    "run.started.v1+deliverable": RunStarted(host="host-1", definition=_DELIVERS, session_version=4),
    "run.started.v1+agents": RunStarted(host="host-1", definition=_ASKS_OTHERS),
    "run.started.v1+continuations": RunStarted(host="host-1", definition=_BOUNDED),
    "run.started.v1+beside": RunStarted(host="host-1", definition=_COMPACTS),
    "side-call.started.v1": SideCallStarted(
        purpose=SidePurpose.COMPACTION, attempt=2, provider="primary", model="tiny"
    ),
    "side-call.queued.v1": SideCallQueued(
        purpose=SidePurpose.JUDGE, attempt=2, provider="primary", model="tiny"
    ),
    "side-call.replied.v1": SideCallReplied(
        purpose=SidePurpose.JUDGE,
        attempt=2,
        provider="primary",
        model="tiny",
        usage=_USAGE,
        cost=Decimal("0.0000425"),
        currency="EUR",
        cached=True,
        flaw="the judge gave no verdict",
    ),
    "side-call.failed.v1": SideCallFailed(
        purpose=SidePurpose.COMPACTION,
        attempt=2,
        provider="primary",
        model="tiny",
        failure_class=FailureClass.TRANSIENT,
        failure=_FAILURE,
    ),
    "side-fallback.used.v1": SideFallbackUsed(
        purpose=SidePurpose.COMPACTION,
        primary=_PRIMARY,
        fallback=_BACKUP,
        failure_class=FailureClass.UNAVAILABLE,
        reason="overloaded",
        skipped=(_PRIMARY,),
    ),
    "context.compacted.v1": ContextCompacted(summary=_SUMMARY, context_tokens=61234, reused=True),
    "context.compaction-failed.v1": CompactionFailed(
        error="provider primary failed", error_type="chain_exhausted", error_class=ErrorClass.PROVIDER
    ),
    "criterion.judged.v1": CriterionJudged(met=True, reason="It names Tuesday."),
    "answer.sent-back.v1": AnswerSentBack(round=2, message="It names no day."),
    "session.summarised.v1": SessionSummarised(run_id=_ROOT, summary=_SUMMARY),
    "model-call.started.v1": ModelCallStarted(step=2, attempt=3, provider="primary", model="small"),
    "model-call.queued.v1": ModelCallQueued(step=2, attempt=3, provider="primary", model="small"),
    "text.delta.v1": TextDelta(step=2, text="It ships \u2708"),
    "model.replied.v1": ModelReplied(
        step=2,
        provider="primary",
        model="small",
        message=_REPLY,
        finish=FinishReason.TOOL_CALLS,
        usage=_USAGE,
        cost=Decimal("0.0000425"),
        currency="EUR",
    ),
    "model.replied.v1+cached": ModelReplied(
        step=2,
        provider="primary",
        model="small",
        message=_REPLY,
        finish=FinishReason.TOOL_CALLS,
        cached=True,
    ),
    "model-call.failed.v1": ModelCallFailed(
        step=2,
        attempt=3,
        provider="primary",
        model="small",
        failure_class=FailureClass.TRANSIENT,
        failure=_FAILURE,
    ),
    "model-call.failed.v1+text": ModelCallFailed(
        step=2,
        attempt=3,
        provider="primary",
        model="small",
        failure_class=FailureClass.TRANSIENT,
        failure=_FAILURE,
        text="Well, ",
    ),
    "model-call.retried.v1": ModelCallRetried(
        step=2, provider="primary", model="small", failure_class=FailureClass.EMPTY, wait_ms=350
    ),
    "chain-link.skipped.v1": ChainLinkSkipped(
        step=2, provider="backup", model="big", reason="no_tool_support"
    ),
    "model-fallback.used.v1": ModelFallbackUsed(
        primary=_PRIMARY,
        fallback=_BACKUP,
        failure_class=FailureClass.UNAVAILABLE,
        reason="overloaded",
        step=2,
        restarted=True,
    ),
    "chain.exhausted.v1": ChainExhausted(
        step=2,
        links=(_PRIMARY, _BACKUP),
        error="provider primary failed",
        error_class=ErrorClass.PROVIDER,
    ),
    "chain.exhausted.v1+retry-after": ChainExhausted(
        step=2,
        links=(_PRIMARY, _BACKUP),
        error="provider primary failed",
        error_class=ErrorClass.PROVIDER,
        retry_after_s=29.5,
    ),
    "tool.invoking.v1": ToolInvoking(
        call_id="call_1",
        tool="get_order",
        arguments='{"id": 7}',
        effect=ToolEffect.EXTERNAL,
        call_key="0f4e",
        safe_to_repeat=True,
    ),
    "tool.returned.v1": ToolReturned(
        call_id="call_1", tool="get_order", output="shipped", duration_ms=12, truncated=True
    ),
    "tool.failed.v1": ToolFailed(
        call_id="call_1",
        tool="get_order",
        failure=ToolFailure.TIMED_OUT,
        output="no result within 30 s",
        duration_ms=30000,
    ),
    "tool.answered.v1": ToolAnswered(
        call_id="call_2",
        tool="get_order",
        arguments='{"id":7}',
        output="no such order",
        failed=True,
        recorded_run_id=_ROOT,
        recorded_call_id="call_1",
    ),
    "tool.outcome-unknown.v1": ToolOutcomeUnknown(call_id="call_1", tool="refund", reason="did not stop"),
    "turn.nudged.v1": TurnNudged(missing="no call of get_order", message="Call get_order."),
    "run.cancel-requested.v1": RunCancelRequested(reason="too slow"),
    "run.completed.v1": RunCompleted(answer="It ships today.", finish=FinishReason.LENGTH),
    "run.failed.v1": RunFailed(
        error="provider primary failed", error_type="provider_unavailable", error_class=ErrorClass.PROVIDER
    ),
    "run.completed.v1+fallbacks": RunCompleted(answer="It ships today.", fallbacks_taken=(_PRIMARY,)),
    "run.failed.v1+fallbacks": RunFailed(
        error="provider primary failed",
        error_type="chain_exhausted",
        error_class=ErrorClass.PROVIDER,
        fallbacks_taken=(_PRIMARY, _BACKUP),
        refunded=True,
    ),
    "run.failed.v1+retry-after": RunFailed(
        error="provider primary failed",
        error_type="provider_unavailable",
        error_class=ErrorClass.PROVIDER,
        retry_after_s=29.5,
    ),
    "run.cancelled.v1": RunCancelled(reason="too slow"),
    "run.cancelled.v1+receipt": RunCancelled(
        reason="too slow",
        model_call=_BACKUP,
        interrupted=(StoppedCall(call_id="call_1", tool="get_order"),),
        unknown=(StoppedCall(call_id="call_2", tool="refund"),),
        descendants=2,
    ),
    "job.attempts-exhausted.v1": JobAttemptsExhausted(attempts=2),
    "schedule.defined.v1": ScheduleDefined(definition=_NIGHTLY, next_due=_DUE),
    "schedule.paused.v1": SchedulePaused(),
    "schedule.resumed.v1": ScheduleResumed(next_due=_DUE),
    "schedule.fired.v1": ScheduleFired(due=_DUE, run_id=_ROOT, next_due=_LATER, missed_since=_DUE),
    "schedule.skipped.v1": ScheduleSkipped(due=_DUE, until=_DUE, next_due=_LATER),
    "schedule.triggered.v1": ScheduleTriggered(run_id=_ROOT),
    "schedule.removed.v1": ScheduleRemoved(),
    "batch.created.v1": BatchCreated(agent="support", runs=(_ROOT, _PARENT)),
    "session.opened.v1": SessionOpened(
        session_id="conv_1", metadata={"topic": "orders"}, messages=_CONVERSATION, continues_run_id=_BEFORE
    ),
    "run.created.v1+continues": RunCreated(
        tenant="acme",
        kind=RunKind.AGENT,
        agent="support",
        input=(_QUESTION,),
        continued_from_run_id=_BEFORE,
        chain_root_run_id=_ROOT,
    ),
    "run.created.v1+replay": RunCreated(
        tenant="acme",
        kind=RunKind.AGENT,
        agent="support",
        input=(_QUESTION,),
        replay=Replay(run_id=_BEFORE, tools=ReplayTools.NONE),
    ),
    "tool.failed.v1+not-run": ToolFailed(
        call_id="call_1", tool="get_order", failure=ToolFailure.NOT_RUN, output="a replay runs no tools"
    ),
    "child-run.started.v1": ChildRunStarted(run_id=_BEFORE, agent="researcher", cause="call_1"),
    "usage.reported.v1": UsageReported(
        cause="call_1", kind="render", amount=Decimal("0.25"), currency="EUR", counted=True
    ),
    "tool.failed.v1+refused": ToolFailed(
        call_id="call_1",
        tool="get_order",
        failure=ToolFailure.REFUSED,
        output="the tree has spent its tokens",
    ),
    "tool.failed.v1+agent": ToolFailed(
        call_id="call_1", tool="researcher", failure=ToolFailure.AGENT_FAILED, output="it failed"
    ),
    "run.continuation-blocked.v1": RunContinuationBlocked(
        cause=ContinuationBlock.OUTCOME_UNKNOWN, reason="nobody knows what came of it", remedy="Find out."
    ),
    "run.continued.v1": RunContinued(by=_BEFORE),
    "run.awaiting-approval.v1": RunAwaitingApproval(
        calls=(
            AwaitedCall(
                call_id="call_1", tool="refund", arguments='{"order_id":"1042"}', effect="destructive"
            ),
        )
    ),
    "run.awaiting-input.v1": RunAwaitingInput(
        requests=(InputRequest(id="r1", node="approve", prompt="Publish?", schema={"type": "boolean"}),)
    ),
    "run.wait-ended.v1": RunWaitEnded(cause=WaitOver.WITHDRAWN, reason="not wanted any more"),
    "tool.resolved.v1": ToolResolved(call_id="call_1", tool="refund", output="no such order", failed=True),
    "session.turn-queued.v1": SessionTurnQueued(run_id=_ROOT, limit_s=700.5, in_place_of=_BEFORE),
    "session.turn-begun.v1": SessionTurnBegun(run_id=_ROOT, limit_s=700.5),
    "idempotency-key.reserved.v1": IdempotencyKeyReserved(
        key="ticket-4182",
        method="POST",
        path="/tracon/api/agents/support/run",
        fingerprint="9f86d081884c7d65",
        run_id=_ROOT,
        form="run",
    ),
    "idempotency-key.completed.v1": IdempotencyKeyCompleted(
        run_id=_BEFORE,
        status=202,
        content_type="application/json",
        body='{"answer":"It ships \u2708"}',
        headers={"Location": "/tracon/api/jobs/7"},
        by_operator=True,
    ),
    "idempotency-key.released.v1": IdempotencyKeyReleased(run_id=_BEFORE, reason="run_failed"),
    "session.turn-added.v1": SessionTurnAdded(run_id=_ROOT, messages=_CONVERSATION),
    **WORKFLOW_SAMPLES,
    **AGENT_SAMPLES,
    **APPROVAL_SAMPLES,
}


def write_missing(directory: Path) -> None:
    for name, event in SAMPLES.items():
        path = directory / f"{name}.json"
        if not path.exists():
            path.write_bytes(Codec().encode(event)[1])


if __name__ == "__main__":
    write_missing(Path(__file__).parent / "golden")
