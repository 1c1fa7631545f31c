"""An ended run as the answer to the request that began it: the same bytes at any time, on any host."""

from collections.abc import Callable, Iterable, Mapping

from app.http.openai import chat_request, response_request
from app.http.openai.completion import completion_of
from app.http.openai.failures import failure_of_run
from app.http.openai.response_so_far import ResponseSoFar
from app.http.openai.run_so_far import RunSoFar
from app.http.rendered import Rendered, rendered
from app.store.feed import Frame
from domain.events import RunCompleted
from domain.ids import RunId

QUEUED = f"{response_request.API}.queued"
"""A response in the background, at once."""


def completion(run: RunSoFar) -> Rendered:
    """A chat completion, or the error that the run ended with."""
    failure = failure_of_run(run)
    if failure is not None:
        return failure.render()
    if not isinstance(run.ending, RunCompleted):
        raise RuntimeError(f"run {run.id} has not ended")
    return rendered(completion_of(run, run.ending.answer))


def response(so_far: ResponseSoFar) -> Rendered:
    """A response, or the error that the run ended with."""
    failure = failure_of_run(so_far.run)
    return rendered(so_far.response) if failure is None else failure.render()


def render(run_id: RunId, frames: Iterable[Frame], *, api: str) -> Rendered:
    """The answer in the words of the API that took the submission (`Origin.api`), from all of its events.

    `QUEUED` is the one to who does not wait for them.
    """
    return _RENDERERS[api](run_id, frames)


def _queued(run_id: RunId, frames: Iterable[Frame]) -> Rendered:
    """As it was when it was recorded, whatever it has come to since."""
    so_far = ResponseSoFar(run_id)
    so_far.see(next(iter(frames)))
    return rendered(so_far.response)


def _completion(run_id: RunId, frames: Iterable[Frame]) -> Rendered:
    run = RunSoFar(run_id)
    for frame in frames:
        run.see(frame)
    return completion(run)


def _response(run_id: RunId, frames: Iterable[Frame]) -> Rendered:
    so_far = ResponseSoFar(run_id)
    for frame in frames:
        so_far.see(frame)
    return response(so_far)


_RENDERERS: Mapping[str, Callable[[RunId, Iterable[Frame]], Rendered]] = {
    chat_request.API: _completion,
    response_request.API: _response,
    QUEUED: _queued,
}
