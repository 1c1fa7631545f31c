"""A run's end as one answer, for a client that waited for it."""

from contextlib import aclosing
from typing import NamedTuple

import msgspec
from aiohttp import web

from app.http.problems import Problem, problem, response_of
from app.http.replies import reply
from app.http.watching import until_end
from app.store.event_log import EventLog
from domain.events import Event, Recorded, RunCompleted, RunFailed
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
"""What is said where nobody knows."""


class RunAnswer(RunRecord, frozen=True, kw_only=True):
    """The run as it ended, and its answer. A run that waits for a person has none yet."""

    answer: str | None


class Ended(NamedTuple):
    """A run that is over. `retry_after_s`: when another may fare better, where somebody knows (BREAK-2)."""

    run: RunAnswer
    retry_after_s: float | None


async def end_of(log: EventLog, run_id: RunId) -> Ended:
    """Wait for the run's end."""
    record: RunRecord | None = None
    last: Event | None = None
    async with aclosing(until_end(log, run_id, 0)) as batches:
        async for batch in batches:
            for frame in batch:
                record = advance(record, frame) if isinstance(frame, Recorded) else record
                last = frame.event
    if record is None:
        raise BrokenStream(f"run {run_id} was followed to nothing")
    answer = last.answer if isinstance(last, RunCompleted) else None
    run = RunAnswer(**msgspec.structs.asdict(record), answer=answer)
    return Ended(run, last.retry_after_s if isinstance(last, RunFailed) else None)


def respond(ended: Ended, request: web.Request) -> web.Response:
    """The run as JSON. Without an answer it is a problem, which carries the run so that nothing is lost."""
    run = ended.run
    match run.status:
        case RunStatus.FAILED:
            return response_of(_failure(run, ended.retry_after_s), request)
        case RunStatus.CANCELLED:
            return response_of(problem(409, "run_cancelled", "The run was cancelled.", run=run), request)
        case _:
            return reply(run)


def status_of(error_type: str | None, error_class: ErrorClass) -> int:
    """The status that tells of a run that failed like this."""
    if error_type in _UNAVAILABLE and error_class is ErrorClass.PROVIDER:
        return 503
    return _STATUS_OF_CLASS[error_class]


def _failure(run: RunAnswer, retry_after_s: float | None) -> Problem:
    status = status_of(run.error_type, ErrorClass(run.error_class or ErrorClass.INTERNAL))
    return problem(
        status,
        run.error_type or "run_failed",
        run.error or "The run failed.",
        run=run,
        retry_after_s=(retry_after_s or _RETRY_AFTER_S) if status == 503 else None,
    )
