"""Chat completions: an agent's run in OpenAI's words, whole or as it is written."""

from contextlib import aclosing
from functools import partial

from aiohttp import web

from app.http.bodies import NoQuery
from app.http.decoding import body_of, query_of
from app.http.idempotency import is_keyed, once
from app.http.openai import rendering
from app.http.openai.answer_form import check_schema
from app.http.openai.chat_request import ChatCompletionRequest
from app.http.openai.chunks import Chunks
from app.http.openai.failures import failure_of_run
from app.http.openai.keys import COMPLETION
from app.http.openai.run_so_far import RunSoFar
from app.http.openai.streams import ChunkStream
from app.http.openai.waiting import wait_for_end
from app.http.own_run import own_run
from app.http.request_keys import STREAMING
from app.http.services import STREAMS, services_of, tenant_of
from app.http.watching import until_end
from app.supervision.run_service import StartRequest


async def create_chat_completion(request: web.Request) -> web.StreamResponse:
    query_of(request, NoQuery)
    if is_keyed(request):
        return await once(request, COMPLETION, partial(_submitted, request))
    services = services_of(request)
    services.drain.admit()
    body = await body_of(request, ChatCompletionRequest)
    submission = await _submission(request, body)
    async with own_run(request, services.runs.start(submission)) as run_id:
        if body.stream:
            return await _stream(request, Chunks(run_id, with_usage=body.wants_usage))
        run = RunSoFar(run_id)
        await wait_for_end(request, run_id, run.see)
        return rendering.completion(run).response()


async def _submitted(request: web.Request) -> StartRequest:
    return await _submission(request, await body_of(request, ChatCompletionRequest))


async def _submission(request: web.Request, body: ChatCompletionRequest) -> StartRequest:
    submission = body.submission(tenant_of(request))
    await check_schema(submission.overrides, "response_format.json_schema.schema")
    return submission


async def _stream(request: web.Request, chunks: Chunks) -> web.StreamResponse:
    """Only a run that has its answer ends with `[DONE]`."""
    services, request[STREAMING] = services_of(request), True
    async with (
        request.app[STREAMS].open(ChunkStream(request, {})) as stream,
        aclosing(until_end(services.log, chunks.run.id, 0)) as batches,
    ):
        async for batch in batches:
            if told := b"".join(map(chunks.tell, batch)):
                await stream.send(told)
        if failure := failure_of_run(chunks.run):
            await stream.fail_with(failure)
    return stream
