// What the npm package `openai` makes of the service: its streams, its errors, its retries, its lists.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import OpenAI from 'openai';

const { TRACON_URL, TRACON_LIMITED_URL } = process.env;
const ask = (text = 'hello') => [{ role: 'user', content: text }];

/** A client, and every request that it made, with its status and when it was made. */
function clientOf(url, options = {}) {
  const made = [];
  const watched = async (input, init) => {
    const at = performance.now();
    const answer = await fetch(input, init);
    made.push({ at, status: answer.status, retryAfter: Number(answer.headers.get('retry-after')) });
    return answer;
  };
  const ai = new OpenAI({ baseURL: `${url}/tracon/v1`, apiKey: 'unused', fetch: watched, maxRetries: 0, ...options });
  return { ai, made };
}

async function get(path) {
  const answer = await fetch(`${TRACON_URL}/tracon${path}`, { headers: { accept: 'application/json' } });
  assert.equal(answer.status, 200);
  return answer.json();
}

async function eventsOf(response) {
  return (await get(`/api/runs/${response.headers.get('x-run-id')}/events`)).events;
}

/** What the function finds, as soon as it finds something. */
async function until(holds) {
  const deadline = performance.now() + 20_000;
  while (performance.now() < deadline) {
    const found = await holds();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
  throw new Error('it did not come true in time');
}

const textOf = (chunk) => chunk.choices[0]?.delta?.content ?? '';

test('a streamed chat says what the events of its run say', async () => {
  const { ai } = clientOf(TRACON_URL);
  const asked = { model: 'story', messages: ask(), stream: true, stream_options: { include_usage: true } };
  const { data: stream, response } = await ai.chat.completions.create(asked).withResponse();
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  const text = chunks.map(textOf).join('');
  const events = await eventsOf(response);
  const deltas = events.filter((event) => event.type === 'TextDelta').map((event) => event.data.text);
  const [completed] = events.filter((event) => event.type === 'RunCompleted');
  assert.equal(text, 'Once upon a time, Größe \u{1f600}.');
  assert.equal(text, deltas.join(''));
  assert.equal(text, completed.data.answer);
  assert.ok(chunks.filter(textOf).length > 1, 'it came in pieces');
  assert.equal(chunks.findLast((chunk) => chunk.choices.length).choices[0].finish_reason, 'stop');
  const [replied] = events.filter((event) => event.type === 'ModelReplied');
  const { input_tokens, output_tokens } = replied.data.usage;
  assert.equal(chunks.at(-1).usage.total_tokens, input_tokens + output_tokens);
});

test('a stream of an agent with tools has all of its words, and none of its tools', async () => {
  const { ai } = clientOf(TRACON_URL);
  const runner = ai.chat.completions.stream({ model: 'clerk', messages: ask() });
  const whole = await runner.finalChatCompletion();
  assert.equal(whole.choices[0].message.content, 'Let me look.\n\nIt is raining.');
  assert.equal(whole.choices[0].message.tool_calls, undefined);
});

test('streamed and whole, an answer is the same', async () => {
  const { ai } = clientOf(TRACON_URL);
  const whole = await ai.chat.completions.create({ model: 'story', messages: ask() });
  const streamed = await ai.chat.completions.stream({ model: 'story', messages: ask() }).finalChatCompletion();
  assert.deepEqual(streamed.choices[0].message.content, whole.choices[0].message.content);
  assert.deepEqual(Object.keys(streamed).toSorted(), Object.keys(whole).filter((key) => key !== 'usage').toSorted());
});

test('a stream that breaks off is raised, after what was said', async () => {
  const { ai, made } = clientOf(TRACON_URL, { maxRetries: 2 });
  const stream = await ai.chat.completions.create({ model: 'cut', messages: ask(), stream: true });
  let text = '';
  await assert.rejects(
    async () => {
      for await (const chunk of stream) text += textOf(chunk);
    },
    (error) => error instanceof OpenAI.APIError && error.code === 'stream_error' && error.type === 'server_error',
  );
  assert.equal(text, 'This will ');
  assert.equal(made.length, 1);
});

test('a stream that fails before its first words has the status of its failure', async () => {
  const { ai, made } = clientOf(TRACON_URL, { maxRetries: 2 });
  await assert.rejects(
    ai.chat.completions.create({ model: 'rejecting', messages: ask(), stream: true }),
    (error) => error instanceof OpenAI.UnprocessableEntityError && error.code === 'provider_rejected',
  );
  assert.equal(made.length, 1);
});

test('an agent that is not there is not found', async () => {
  const { ai } = clientOf(TRACON_URL);
  await assert.rejects(
    ai.chat.completions.create({ model: 'nobody', messages: ask() }),
    (error) => error instanceof OpenAI.NotFoundError && error.code === 'model_not_found' && error.param === 'model',
  );
});

for (const stream of [false, true]) {
  test(`503 is tried again after the time that it names${stream ? ', streamed' : ''}`, async () => {
    const { ai, made } = clientOf(TRACON_URL, { maxRetries: 2 });
    const answer = await ai.chat.completions.create({ model: stream ? 'busy-streaming' : 'busy', messages: ask(), stream });
    let text = stream ? '' : answer.choices[0].message.content;
    if (stream) for await (const chunk of answer) text += textOf(chunk);
    assert.equal(text, 'Here I am.');
    assert.deepEqual(made.map((one) => one.status), [503, 200]);
    assertWaited(made);
  });
}

test('429 is tried again after the time that it names', async () => {
  const { ai, made } = clientOf(TRACON_LIMITED_URL, { maxRetries: 3 });
  await ai.models.list();
  const answer = await ai.chat.completions.create({ model: 'echo', messages: ask() });
  assert.equal(answer.choices[0].message.content, 'You said: hello');
  assert.deepEqual(made.map((one) => one.status), [200, 429, 200]);
  assertWaited(made.slice(1));
});

test('a run that was cancelled is not tried again, though 409 would be', async () => {
  const { ai, made } = clientOf(TRACON_URL, { maxRetries: 2 });
  const waiting = ai.chat.completions.create({ model: 'talker', messages: ask() });
  const refused = assert.rejects(waiting, (error) => error instanceof OpenAI.ConflictError);
  const live = await until(async () => (await get('/api/runs?agent=talker&status=Running')).runs[0]);
  await fetch(`${TRACON_URL}/tracon/api/runs/${live.id}/cancel`, { method: 'POST' });
  await refused;
  assert.deepEqual(made.map((one) => one.status), [409]);
});

test('whoever closes a stream leaves the run to go on', async () => {
  const { ai } = clientOf(TRACON_URL);
  const { data: stream, response } = await ai.chat.completions
    .create({ model: 'story', messages: ask(), stream: true })
    .withResponse();
  for await (const chunk of stream) if (textOf(chunk)) break;
  await until(async () => (await eventsOf(response)).some((event) => event.type === 'RunCompleted'));
});

test('the models are the agents', async () => {
  const { ai } = clientOf(TRACON_URL);
  const listed = [];
  for await (const model of ai.models.list()) listed.push(model.id);
  const agents = (await get('/api/agents')).agents.map((agent) => agent.name);
  assert.deepEqual(listed.toSorted(), agents.toSorted());
  assert.equal((await ai.models.retrieve('echo')).id, 'echo');
  await assert.rejects(ai.models.retrieve('nobody'), OpenAI.NotFoundError);
});

test('a streamed response says what the whole one says, and is gone on from', async () => {
  const { ai } = clientOf(TRACON_URL);
  const runner = ai.responses.stream({ model: 'clerk', input: 'hello' });
  let text = '';
  for await (const event of runner) if (event.type === 'response.output_text.delta') text += event.delta;
  const response = await runner.finalResponse();
  assert.equal(text.replaceAll('\n', ''), response.output_text.replaceAll('\n', ''));
  const next = await ai.responses.create({ model: 'echo', input: 'again', previous_response_id: response.id });
  assert.equal(next.output_text, 'You said: again');
});

/** Between the first and the last of these requests the client waited as it was told. */
function assertWaited([refused, served]) {
  assert.ok(refused.retryAfter >= 1);
  assert.ok(served.at - refused.at >= refused.retryAfter * 1000 - 50, 'the client came too early');
}
