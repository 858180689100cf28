// The official OpenAI client against `prony serve`: streams a chat and a completion, reads usage,
// gets typed errors. Usage: node openai.test.mjs PATH/TO/prony. Exit 77: skipped, with the reason.
import assert from 'node:assert/strict';
import { startServer } from './process.mjs';

let OpenAI;
try {
  ({ default: OpenAI } = await import('openai'));
} catch {
  console.log('skipped: the npm package openai is not installed (./run setup test)');
  process.exit(77);
}

const server = await startServer(process.argv[2], ['serve', '--model', 'dummy:test', '--port', '0']);
const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: 'none', maxRetries: 0, timeout: 30_000 });
const model = 'dummy:test';

async function streamedChat() {
  const stream = await client.chat.completions.create({
    model, stream: true, stream_options: { include_usage: true }, max_tokens: 12, temperature: 0,
    messages: [{ role: 'system', content: 'be brief' }, { role: 'user', content: 'hello' }],
  });
  let text = '', usage = null, finish = null, role = null;
  for await (const chunk of stream) {
    const choice = chunk.choices[0];
    role ??= choice?.delta?.role;
    text += choice?.delta?.content ?? '';
    finish ??= choice?.finish_reason ?? null;
    if (chunk.usage) usage = chunk.usage;
  }
  assert.equal(role, 'assistant');
  assert.ok(['length', 'stop'].includes(finish), `finish_reason ${finish}`);
  assert.ok(usage.completion_tokens >= 1 && usage.completion_tokens <= 12);
  // begin, then marker + text + end for each message, then the assistant's marker
  assert.equal(usage.prompt_tokens, 1 + (2 + 8) + (2 + 5) + 1);
  assert.equal(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens);
  return text;
}

async function streamedCompletion() {
  const stream = await client.completions.create({
    model, prompt: 'once upon', stream: true, stream_options: { include_usage: true },
    max_tokens: 9, temperature: 0, ignore_eos: true,
  });
  let text = '', usage = null;
  for await (const chunk of stream) {
    text += chunk.choices[0]?.text ?? '';
    if (chunk.usage) usage = chunk.usage;
  }
  assert.equal(usage.completion_tokens, 9);
  assert.equal(usage.prompt_tokens, 10);
  return text;
}

async function wholeAnswersEqualStreams(chatText, completionText) {
  const chat = await client.chat.completions.create({
    model, max_tokens: 12, temperature: 0,
    messages: [{ role: 'system', content: 'be brief' }, { role: 'user', content: 'hello' }],
  });
  assert.equal(chat.choices[0].message.content, chatText);
  const completion = await client.completions.create({
    model, prompt: 'once upon', max_tokens: 9, temperature: 0, ignore_eos: true, logprobs: 2,
  });
  assert.equal(completion.choices[0].text, completionText);
  assert.equal(completion.choices[0].logprobs.tokens.length, 9);
  assert.ok(completion.choices[0].logprobs.token_logprobs.every((x) => x <= 0));
}

async function typedErrors() {
  await assert.rejects(client.completions.create({ model: 'other', prompt: 'x' }), OpenAI.NotFoundError);
  await assert.rejects(client.completions.create({ model, prompt: 'x', temperature: -1 }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.equal(error.param, 'temperature');
    return true;
  });
  await assert.rejects(client.completions.create({ model, prompt: 'x'.repeat(100_000) }), (error) => {
    assert.ok(error instanceof OpenAI.BadRequestError);
    assert.match(error.message, /maximum context length is \d+ tokens, the prompt has 100001/);
    return true;
  });
}

async function listsModels() {
  const ids = [];
  for await (const entry of client.models.list()) ids.push(entry.id);
  assert.deepEqual(ids, [model]);
}

try {
  await listsModels();
  const chat = await streamedChat();
  const completion = await streamedCompletion();
  await wholeAnswersEqualStreams(chat, completion);
  await typedErrors();
  console.log('openai client: streams, usage, typed errors as expected');
} finally {
  const code = await server.stop();
  assert.equal(code, 0, `prony serve ended with ${code} after SIGTERM`);
}
