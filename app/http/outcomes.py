"""A run's end as one answer, for a client that waited for it."""

from contextlib import aclosing

import msgspec
from aiohttp import web

from app.http.problems import Problem, problem, response_of
from app.http.replies import reply
from app.http.watching import until_end
from app.store.event_log import EventLog
from domain.events import Recorded, RunCompleted
from domain.failure import ErrorClass
from domain.ids import RunId
from domain.run import RunStatus
from projections.base import BrokenStream
from projections.run_record import RunRecord, advance

_STATUS_OF_CLASS = {
    ErrorClass.PROVIDER: 502,
    ErrorClass.QUOTA_EXCEEDED: 429,
    ErrorClass.TIMEOUT: 504,
    ErrorClass.CONTENT_FILTERED: 422,
    ErrorClass.CONTENT_BLOCKED: 422,
    ErrorClass.INFRASTRUCTURE: 503,
    ErrorClass.INVALID: 422,
    ErrorClass.INTERNAL: 500,
}
_UNAVAILABLE = frozenset({"provider_unavailable", "chain_exhausted"})
_RETRY_AFTER_S = 1.0


class RunAnswer(RunRecord, frozen=True, kw_only=True):
    """The run as it ended, and its answer. A run that waits for a person has none yet."""

    answer: str | None


async def end_of(log: EventLog, run_id: RunId) -> RunAnswer:
    """Wait for the run's end."""
    record: RunRecord | None = None
    answer: str | None = None
    async with aclosing(until_end(log, run_id, 0)) as batches:
        async for batch in batches:
            for frame in batch:
                record = advance(record, frame) if isinstance(frame, Recorded) else record
                answer = frame.event.answer if isinstance(frame.event, RunCompleted) else answer
    if record is None:
        raise BrokenStream(f"run {run_id} was followed to nothing")
    return RunAnswer(**msgspec.structs.asdict(record), answer=answer)


def respond(ended: RunAnswer, request: web.Request) -> web.Response:
    """The run as JSON. Without an answer it is a problem, which carries the run so that nothing is lost."""
    match ended.status:
        case RunStatus.FAILED:
            return response_of(_failure(ended), request)
        case RunStatus.CANCELLED:
            return response_of(problem(409, "run_cancelled", "The run was cancelled.", run=ended), request)
        case _:
            return reply(ended)


def _failure(ended: RunAnswer) -> Problem:
    unavailable = ended.error_type in _UNAVAILABLE
    status = 503 if unavailable else _STATUS_OF_CLASS[ErrorClass(ended.error_class or ErrorClass.INTERNAL)]
    return problem(
        status,
        ended.error_type or "run_failed",
        ended.error or "The run failed.",
        run=ended,
        retry_after_s=_RETRY_AFTER_S if status == 503 else None,
    )
