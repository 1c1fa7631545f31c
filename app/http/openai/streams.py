"""Event streams as OpenAI's clients read them: a failure is a frame that they raise."""

from contextlib import suppress

import msgspec
from aiohttp import ClientConnectionResetError, web

from app.http.display import encode
from app.http.negotiation import JSON
from app.http.openai.error_object import ApiErrorBody
from app.http.openai.failures import Failure, failure_of_request
from app.http.openai.response_events import StreamErrorEvent
from app.http.openai.response_teller import ResponseTeller, frame_of
from app.http.problems import Problem, error_of
from app.http.sse import EventStream


class ChunkStream(EventStream):
    """Chunks of a completion. It opens with the first of them: what fails before has its own status."""

    async def begin(self) -> None:
        """Not before there is something to send."""

    async def fail(self, told: Problem) -> None:
        # The run goes on without the stream: a client that asked again would have it done twice.
        await self.fail_with(msgspec.structs.replace(failure_of_request(told), retry=False))

    async def fail_with(self, failure: Failure) -> None:
        """End with an error: as the whole answer while there is none yet, as a last frame after that."""
        body = encode(ApiErrorBody(error=failure.error))
        if self.prepared:
            body = b"data: %b\n\n" % body
        else:
            self.set_status(failure.status)
            self.content_type = JSON
            self.headers.update(failure.headers)
        with suppress(ClientConnectionResetError):
            await self.send(body)


class ResponseStream(EventStream):
    """The events of a response. What breaks it off is an event of the stream, not of the response."""

    def __init__(self, request: web.Request, teller: ResponseTeller) -> None:
        super().__init__(request, {})
        self._teller = teller

    async def fail(self, told: Problem) -> None:
        error = error_of(told)
        event = StreamErrorEvent(
            sequence_number=max(0, self._teller.told),
            code=error.code,
            message=error.message,
            param=error.param,
            error=error,
        )
        with suppress(ClientConnectionResetError):
            await self.send(frame_of(event))
