"""Failures in OpenAI's words: error bodies, and headers from which its clients know whether to try again."""

import msgspec

from app.http.openai.error_object import ApiError, ApiErrorBody, error_object
from app.http.openai.run_so_far import RunSoFar
from app.http.outcomes import status_of
from app.http.problems import Problem, error_of, retry_after
from app.http.rendered import Rendered, rendered
from domain.criterion import JUDGE_UNAVAILABLE
from domain.events import RunAwaitingApproval, RunCancelled, RunFailed, RunWaits
from domain.ids import RunId

_RETRY_AFTER_S = 1.0
_MAY_PASS = frozenset(
    {
        "provider_unavailable",
        "chain_exhausted",
        JUDGE_UNAVAILABLE,
        "stream_error",
        "store_unavailable",
        "interrupted",
        "orphaned",
    }
)
"""Errors of runs that the same request may be spared the next time."""


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is no answer. `retry`: whether the same request, sent again, may do better."""

    status: int
    error: ApiError
    retry: bool
    retry_after_s: float | None = None

    @property
    def headers(self) -> dict[str, str]:
        """`X-Should-Retry` speaks up where the status would have a client try again for nothing."""
        headers = {}
        if self.retry_after_s is not None:
            headers["Retry-After"] = str(retry_after(self.retry_after_s))
        if not self.retry:
            headers["X-Should-Retry"] = "false"
        return headers

    def render(self) -> Rendered:
        return rendered(ApiErrorBody(error=self.error), status=self.status, headers=self.headers)


def waiting_for(run_id: RunId, waits: RunWaits) -> str:
    """Whose turn it is. OpenAI's APIs have no word for a turn that stops in the middle for a person."""
    if isinstance(waits, RunAwaitingApproval):
        tools = ", ".join(sorted({call.tool for call in waits.calls}))
        return f"Run {run_id} waits for somebody to approve its calls of {tools}; then another run goes on."
    return f"Run {run_id} waits for a person's answer; then another run goes on."


def failure_of_request(told: Problem) -> Failure:
    """What came of a request that began nothing. Waiting cures a conflict that says for how long.

    No client waits until a quota begins again.
    """
    wait_s = None if told.retry_after_s is msgspec.UNSET else told.retry_after_s
    return Failure(
        status=told.status,
        error=error_of(told),
        retry=told.status != 501 and told.quota is None and (told.status != 409 or wait_s is not None),
        retry_after_s=wait_s,
    )


def failure_of_run(run: RunSoFar) -> Failure | None:
    """How a run failed that has ended without an answer.

    Another attempt is a new run: it is not invited where a tool may have done something that must not be
    done twice, or where the run would fail again.
    """
    match run.ending:
        case RunFailed(error=error, error_type=type_, error_class=class_) as failed:
            retry, status = type_ in _MAY_PASS and run.repeatable, status_of(type_, class_)
            return Failure(
                status=status,
                error=error_object(status, type_, error, of_run=True),
                retry=retry,
                retry_after_s=(failed.retry_after_s or _RETRY_AFTER_S) if retry else None,
            )
        case RunCancelled():
            cancelled = error_object(409, "run_cancelled", "The run was cancelled.", of_run=True)
            return Failure(status=409, error=cancelled, retry=False)
        case waits if isinstance(waits, RunWaits):
            told = error_object(409, "run_awaits_a_person", waiting_for(run.id, waits), of_run=True)
            return Failure(status=409, error=told, retry=False)
        case _:
            return None
