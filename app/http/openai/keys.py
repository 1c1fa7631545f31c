"""Answers that are given again to whoever repeats a request with its key (IDEM-1)."""

from collections.abc import Sequence

from app.http.openai import chat_request, response_request
from app.http.openai.rendering import QUEUED, render
from app.idempotency.answer import Answer, Form
from domain.events import Recorded, RunEvent
from domain.ids import RunId


def _form(api: str, *, at_once: bool = False) -> Form:
    def answer(recorded: Sequence[Recorded[RunEvent]]) -> Answer:
        made = render(RunId(recorded[0].stream_id), recorded, api=api)
        return Answer(
            status=made.status, content_type=made.content_type, body=made.body, headers=made.headers
        )

    return Form(name=api, render=answer, at_once=at_once, goes_past_people=not at_once)


COMPLETION = _form(chat_request.API)
RESPONSE = _form(response_request.API)
QUEUED_RESPONSE = _form(QUEUED, at_once=True)
