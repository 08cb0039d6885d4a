// OpenAI's own client against `heed serve -m starter`. HEED_BINARY names the program.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { after, before, test as untimedTest } from 'node:test';
import OpenAI from 'openai';

const key = 'sk-test';
const prompt = 'One day the fluffy blue';
const messages = [
  { role: 'system', content: 'A story.' },
  { role: 'user', content: 'Tell me of the mole.' },
];

const test = (name, body) => untimedTest(name, { timeout: 60_000 }, body);

let server;
let baseURL;
let client;

/** The address that the server reports, on a line of its log, once it accepts connections. */
function startServer() {
  const options = ['serve', '-m', 'starter', '--port', '0', '--api-key', key, '--public-metrics'];
  server = spawn(process.env.HEED_BINARY, [...options, '--alias', 'starter,gpt-4o']);
  return new Promise((resolve, reject) => {
    let output = '';
    server.stderr.setEncoding('utf8').on('data', (text) => {
      output += text;
      const address = output.match(/(http:\/\/[0-9.]+:[0-9]+)[^0-9]/);
      if (address) resolve(address[1]);
    });
    server.on('error', reject);
    server.on('exit', (status) => reject(new Error(`heed ended with ${status}: ${output}`)));
  });
}

before(async () => {
  const address = await startServer();
  baseURL = `${address}/v1`;
  client = new OpenAI({ baseURL, apiKey: key, maxRetries: 0 });
}, { timeout: 60_000 });

after(() => server.kill('SIGKILL'));

async function metrics() {
  const response = await fetch(baseURL.replace(/\/v1$/, '/metrics'));
  assert.equal(response.status, 200);
  return response.text();
}

async function rejection(promise) {
  try {
    await promise;
  } catch (error) {
    return error;
  }
  return assert.fail('nothing was refused');
}

test('models are listed and found by their aliases', async () => {
  const models = await client.models.list();
  assert.deepEqual(models.data.map((model) => model.id), ['starter', 'gpt-4o']);
  assert.equal((await client.models.retrieve('gpt-4o')).object, 'model');
  const error = await rejection(client.models.retrieve('other'));
  assert.ok(error instanceof OpenAI.NotFoundError);
  assert.equal(error.code, 'model_not_found');
});

test('a completion continues its prompt', async () => {
  const request = { model: 'gpt-3.5-turbo-instruct', prompt, max_tokens: 8, temperature: 0 };
  const completion = await client.completions.create(request);
  assert.equal(completion.object, 'text_completion');
  assert.equal(completion.model, 'starter');
  assert.equal(completion.choices[0].finish_reason, 'length');
  assert.equal(completion.usage.completion_tokens, 8);

  let text = '';
  for await (const chunk of await client.completions.create({ ...request, stream: true })) {
    text += chunk.choices[0].text;
  }
  assert.equal(text, completion.choices[0].text);
});

test('n completions differ, and stop strings end them', async () => {
  const several = { model: 'starter', prompt, max_tokens: 12, n: 3, seed: 1, temperature: 1 };
  const { choices } = await client.completions.create(several);
  assert.deepEqual(choices.map((choice) => choice.index), [0, 1, 2]);
  assert.equal(new Set(choices.map((choice) => choice.text)).size, 3);

  const greedy = { model: 'starter', prompt, max_tokens: 20, temperature: 0 };
  const whole = (await client.completions.create(greedy)).choices[0].text;
  const stop = whole.slice(10, 15);
  const [stopped] = (await client.completions.create({ ...greedy, stop })).choices;
  assert.equal(stopped.text, whole.slice(0, whole.indexOf(stop)));
  assert.equal(stopped.finish_reason, 'stop');
});

test('an echoed prompt is scored', async () => {
  const { choices } = await client.completions.create({
    model: 'starter', prompt, max_tokens: 0, echo: true, logprobs: 2,
  });
  const { tokens, token_logprobs: scores, top_logprobs: likeliest } = choices[0].logprobs;
  assert.equal(choices[0].text, prompt);
  assert.equal(tokens.join(''), prompt);
  assert.equal(scores[0], null);
  assert.ok(scores.slice(1).every((score) => score <= 0));
  assert.ok(likeliest.slice(1).every((top) => Object.keys(top).length === 2));
});

test('a chat is answered', async () => {
  const completion = await client.chat.completions.create({
    model: 'gpt-4o', messages, max_completion_tokens: 12, temperature: 0, user: 'someone',
    logprobs: true, top_logprobs: 2,
  });
  assert.match(completion.id, /^chatcmpl-/);
  assert.equal(completion.object, 'chat.completion');
  const [choice] = completion.choices;
  assert.equal(choice.message.role, 'assistant');
  assert.ok(choice.message.content.length > 0);
  assert.ok(['stop', 'length'].includes(choice.finish_reason));
  assert.ok(completion.usage.completion_tokens <= 12);
  for (const token of choice.logprobs.content) {
    assert.equal(token.top_logprobs[0].token, token.token);
  }
});

test('a streamed chat is the same chat', async () => {
  const request = { model: 'starter', messages, max_completion_tokens: 12, seed: 5 };
  const whole = await client.chat.completions.create(request);
  const stream = await client.chat.completions.create({
    ...request, stream: true, stream_options: { include_usage: true },
  });
  const deltas = [];
  const reasons = [];
  let usage;
  for await (const chunk of stream) {
    assert.equal(chunk.object, 'chat.completion.chunk');
    if (chunk.usage) usage = chunk.usage;
    for (const choice of chunk.choices) {
      deltas.push(choice.delta);
      if (choice.finish_reason) reasons.push(choice.finish_reason);
    }
  }
  assert.equal(deltas[0].role, 'assistant');
  assert.equal(deltas.map((delta) => delta.content ?? '').join(''), whole.choices[0].message.content);
  assert.deepEqual(reasons, [whole.choices[0].finish_reason]);
  assert.deepEqual(usage, whole.usage);
});

test('the streaming helper assembles a chat', async () => {
  const request = { model: 'starter', messages, max_completion_tokens: 12, seed: 6 };
  const whole = await client.chat.completions.create(request);
  const assembled = await client.chat.completions.stream(request).finalChatCompletion();
  assert.equal(assembled.choices[0].message.content, whole.choices[0].message.content);
});

test('embeddings are vectors of length 1', async () => {
  const input = ['One day', 'Two moles'];
  const { data } = await client.embeddings.create({ model: 'text-embedding-3-small', input });
  assert.deepEqual(data.map((item) => item.index), [0, 1]);
  for (const { embedding } of data) {
    assert.equal(embedding.length, 192);
    const squares = embedding.reduce((sum, value) => sum + value * value, 0);
    assert.ok(Math.abs(squares - 1) < 1e-5);
  }
});

test('a wrong key is an AuthenticationError', async () => {
  const stranger = new OpenAI({ baseURL, apiKey: 'wrong', maxRetries: 0 });
  const error = await rejection(stranger.models.list());
  assert.ok(error instanceof OpenAI.AuthenticationError);
  assert.equal(error.code, 'invalid_api_key');
});

test('a field that cannot be is a BadRequestError with param and code', async () => {
  const chat = { model: 'starter', messages };
  const refused = [
    [() => client.completions.create({ model: 'starter', prompt, temperature: -1 }), 'temperature', 'invalid_value'],
    [() => client.completions.create({ model: 'starter', prompt: 'a '.repeat(600) }), 'prompt', 'context_length_exceeded'],
    [() => client.chat.completions.create({ ...chat, n: 'two' }), 'n', 'invalid_type'],
    [() => client.chat.completions.create({ model: 'starter', messages: [{ role: 'bard', content: '' }] }), 'messages[0].role', 'invalid_value'],
    [() => client.chat.completions.create({ ...chat, tools: [{ type: 'function' }] }), 'tools', 'unsupported_parameter'],
  ];
  for (const [request, param, code] of refused) {
    const error = await rejection(request());
    assert.ok(error instanceof OpenAI.BadRequestError, `${param}: ${error}`);
    assert.equal(error.param, param);
    assert.equal(error.code, code);
    assert.equal(error.type, 'invalid_request_error');
  }
});

test('ignored fields are named in a header', async () => {
  const { response } = await client.completions
    .create({ model: 'starter', prompt, max_tokens: 1, cache_prompt: true })
    .withResponse();
  assert.equal(response.headers.get('x-heed-warning'), 'ignored fields: cache_prompt');
});

test('an aborted stream ends its work', async () => {
  const stream = await client.completions.create({
    model: 'starter', prompt, max_tokens: 250, n: 64, stream: true, ignore_eos: true,
  });
  for await (const chunk of stream) {
    assert.ok(chunk.choices.length > 0);
    stream.controller.abort();
  }
  for (;;) {  // the time limit ends what never comes
    const text = await metrics();
    if (/^heed:requests_open 0$/m.test(text) && /^heed:requests_processing 0$/m.test(text)) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
});
