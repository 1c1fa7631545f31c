"""The tool calls of a run as their readers see them, folded from the run's events."""

from collections.abc import Iterable
from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec

from domain import events as e
from domain.ids import RunId
from domain.messages import ToolCall, unanswered
from projections.base import BrokenStream, Fact
from projections.values import storable


class ToolCallState(StrEnum):
    REQUESTED = "requested"
    """The model asked for it and nothing has started. No reader is shown such a call."""
    INVOKING = "invoking"
    RETURNED = "returned"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """Its body was left behind, or its run ended without it: it may or may not have had its effect.

    It stays so until somebody says what came of it.
    """


class ToolCallRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call. Without `started_at` it has a result but never started: an unknown tool, say."""

    run_id: RunId
    ordinal: int
    """Counts the calls that the run's model asked for, from 1."""
    tenant: str
    step: int
    reply_sequence: int
    """The event of the run in which the model asked for it."""
    call_id: str
    tool: str
    state: ToolCallState
    effect: e.ToolEffect | None = None
    failure: e.ToolFailure | None = None
    arguments: str
    output: str | None = None
    """What the model reads; for an unknown outcome, why it is unknown."""
    truncated: bool = False
    call_key: str | None = None
    safe_to_repeat: bool = False
    requested_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    duration_ms: int | None = None
    resolved: bool = False
    """Its outcome was unknown, and is what somebody said that it was."""


LastStep = tuple[ToolCallRecord, ...]
"""The calls of the last reply that asked for any: all that can still change."""


def tool_calls_of(stream: Iterable[Fact]) -> list[ToolCallRecord]:
    """Every call of one run that started or has a result, in the order in which the model asked."""
    step: LastStep = ()
    calls: dict[int, ToolCallRecord] = {}
    for recorded in stream:
        step = advance(step, recorded)
        calls.update((call.ordinal, call) for call in step)
    return [call for call in calls.values() if call.state is not ToolCallState.REQUESTED]


def advance(step: LastStep, recorded: Fact) -> LastStep:  # noqa: C901 - one flat dispatch
    """The last step's calls after this event of their run. Raises BrokenStream for a call not asked for."""
    match recorded.event:
        case e.RunCreated(decisions=decisions) as created if decisions:
            return _asked(recorded, unanswered(created.input), step=0, first=1)
        case e.ModelReplied() as replied if replied.message.tool_calls:
            return _requested(step, recorded, replied)
        case e.ToolInvoking() as invoking:
            return _changed(step, recorded, invoking.call_id, **_start(recorded, invoking))
        case e.ToolReturned() as returned:
            changes = _end(recorded, ToolCallState.RETURNED, returned.output, returned.duration_ms)
            return _changed(step, recorded, returned.call_id, truncated=returned.truncated, **changes)
        case e.ToolFailed() as failed:
            changes = _end(recorded, ToolCallState.FAILED, failed.output, failed.duration_ms)
            return _changed(step, recorded, failed.call_id, failure=failed.failure, **changes)
        case e.ToolAnswered() as answered:
            state = ToolCallState.FAILED if answered.failed else ToolCallState.RETURNED
            return _changed(step, recorded, answered.call_id, **_end(recorded, state, answered.output))
        case e.ToolOutcomeUnknown() as unknown:
            changes = _end(recorded, ToolCallState.UNKNOWN, unknown.reason)
            return _changed(step, recorded, unknown.call_id, **changes)
        case e.ToolResolved() as resolved:
            state = ToolCallState.FAILED if resolved.failed else ToolCallState.RETURNED
            return _changed(
                step, recorded, resolved.call_id, resolved=True, **_end(recorded, state, resolved.output)
            )
        case _ if isinstance(recorded.event, e.RunEnd):
            return _abandoned(step, recorded)
        case _:
            return step  # a view may ignore any event


ABANDONED = "the run ended while the call was under way"


def _requested(step: LastStep, recorded: Fact, replied: e.ModelReplied) -> LastStep:
    first = step[-1].ordinal + 1 if step else 1
    return _asked(recorded, replied.message.tool_calls, step=replied.step, first=first)


def _asked(recorded: Fact, calls: Iterable[ToolCall], *, step: int, first: int) -> LastStep:
    """Where a run goes on from one that waited, the model asked in that one: the event is its first."""
    return tuple(
        ToolCallRecord(
            run_id=RunId(recorded.stream_id),
            ordinal=ordinal,
            tenant=recorded.tenant,
            step=step,
            reply_sequence=recorded.sequence,
            call_id=storable(call.id),
            tool=storable(call.name),
            state=ToolCallState.REQUESTED,
            arguments=storable(call.arguments),
            requested_at=recorded.at,
        )
        for ordinal, call in enumerate(calls, first)
    )


def _start(recorded: Fact, invoking: e.ToolInvoking) -> dict[str, Any]:
    return {
        "state": ToolCallState.INVOKING,
        "effect": invoking.effect,
        "arguments": storable(invoking.arguments),
        "call_key": storable(invoking.call_key),
        "safe_to_repeat": invoking.safe_to_repeat,
        "started_at": recorded.at,
    }


def _end(recorded: Fact, state: ToolCallState, output: str, duration_ms: int | None = None) -> dict[str, Any]:
    return {
        "state": state,
        "output": storable(output),
        "ended_at": recorded.at,
        "duration_ms": duration_ms,
    }


def _changed(step: LastStep, recorded: Fact, call_id: str, **changes: Any) -> LastStep:
    call_id = storable(call_id)
    if all(call.call_id != call_id for call in step):
        place = f"{recorded.sequence} of run {recorded.stream_id}"
        raise BrokenStream(f"event {place} is of tool call {call_id!r}, which nobody asked for")
    return tuple(
        msgspec.structs.replace(call, **changes) if call.call_id == call_id else call for call in step
    )


def _abandoned(step: LastStep, recorded: Fact) -> LastStep:
    changes = _end(recorded, ToolCallState.UNKNOWN, ABANDONED)
    return tuple(
        msgspec.structs.replace(call, **changes) if call.state is ToolCallState.INVOKING else call
        for call in step
    )
