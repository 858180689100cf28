// A server that speaks one dialect, with exactly known timing: a first token after TTFT, then one
// event every ITL, each in a chunk of its own, TOKENS tokens in all. Beside it answers what `auto`
// asks. Thin on purpose: a table of what each dialect writes.
//
//   node dialect_server.mjs DIALECT FILE   prints "listening on URL" on stderr; on SIGTERM it writes
//                                          {id: {sent: [ns...], body}} to FILE and ends.
import { writeFileSync } from 'node:fs';
import http from 'node:http';
import { pathToFileURL } from 'node:url';

export const TTFT_MS = 40, ITL_MS = 10, TOKENS = 12, PROMPT_TOKENS = 9;

const sse = (object) => `data: ${JSON.stringify(object)}\n\n`;
const line = (object) => `${JSON.stringify(object)}\n`;
const word = (i) => ` w${i}`;
const upTo = (i) => Array.from({ length: i + 1 }, (_, k) => word(k)).join('');
const usage = (completion) =>
  ({ prompt_tokens: PROMPT_TOKENS, completion_tokens: completion, total_tokens: PROMPT_TOKENS + completion });
const typed = (type, more) => `event: ${type}\n${sse({ type, ...more })}`;
const completion = (text, finish = null, more = {}) =>
  sse({ object: 'text_completion', choices: [{ index: 0, text, finish_reason: finish }], ...more });
const tgiToken = (i, more) => `data:${JSON.stringify({ index: i + 1,
  token: { id: i, text: word(i), logprob: 0, special: false }, generated_text: null, details: null, ...more })}\n\n`;

// event(i, body): what brings token i; head: before the first; tail: with or after the last.
export const DIALECTS = {
  'openai-chat': {
    path: '/v1/chat/completions', source: 'usage', finish: 'length',
    head: sse({ choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] }),
    event: (i) => sse({ choices: [{ index: 0, delta: { content: word(i) }, finish_reason: null }] }),
    tail: () => sse({ choices: [{ index: 0, delta: {}, finish_reason: 'length' }] }) +
      sse({ choices: [], usage: usage(TOKENS) }) + 'data: [DONE]\n\n',
  },
  'openai-completions': {
    path: '/v1/completions', source: 'usage', finish: 'length', event: (i) => completion(word(i)),
    tail: () => completion('', 'length', { usage: usage(TOKENS) }) + 'data: [DONE]\n\n',
  },
  'openai-responses': {
    path: '/v1/responses', source: 'usage', finish: 'max_output_tokens',
    head: typed('response.created', { response: { status: 'in_progress', usage: null } }),
    event: (i) => typed('response.output_text.delta', { output_index: 0, delta: word(i) }),
    tail: () => typed('response.output_text.done', { text: upTo(TOKENS - 1) }) +
      typed('response.incomplete', { response: { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' },
        usage: { input_tokens: PROMPT_TOKENS, output_tokens: TOKENS } } }),
  },
  sglang: {
    path: '/generate', source: 'usage', finish: 'length', identity: ['/get_model_info', { model_path: 'm' }],
    event: (i) => sse({ text: upTo(i), output_ids: Array.from({ length: i + 1 }, (_, k) => k),
      meta_info: { prompt_tokens: PROMPT_TOKENS, completion_tokens: i + 1,
        finish_reason: i + 1 === TOKENS ? { type: 'length', length: TOKENS } : null } }),
    tail: () => 'data: [DONE]\n\n',
  },
  llamacpp: {
    path: '/completion', source: 'usage', finish: 'limit', identity: ['/props', { model_path: 'm' }],
    head: sse({ content: '', tokens: [], stop: false, prompt_progress: { total: 9, processed: 4 } }),
    event: (i) => sse({ content: word(i), tokens: [i], stop: false, tokens_predicted: i + 1, tokens_evaluated: PROMPT_TOKENS }),
    tail: () => sse({ content: '', tokens: [], stop: true, stop_type: 'limit', tokens_predicted: TOKENS, tokens_evaluated: PROMPT_TOKENS }),
  },
  tgi: {
    path: '/generate_stream', source: 'usage', finish: 'length', identity: ['/info', { model_id: 'm' }],
    event: (i) => tgiToken(i, i + 1 < TOKENS ? {} : { generated_text: upTo(i),
      details: { finish_reason: 'length', generated_tokens: TOKENS, input_length: PROMPT_TOKENS } }),
  },
  ollama: {
    path: '/api/generate', type: 'application/x-ndjson', source: 'usage', finish: 'length',
    identity: ['/api/tags', { models: [{ name: 'm' }] }],
    event: (i) => line({ model: 'm', response: word(i), done: false }),
    tail: () => line({ model: 'm', response: '', done: true, done_reason: 'length', eval_count: TOKENS, prompt_eval_count: PROMPT_TOKENS }),
  },
  'vllm-generate': {
    path: '/generate', type: '', source: 'event_count', finish: null, bodyEnds: true,
    requires: 'prompt', event: (i, body) => line({ text: [body.prompt + upTo(i)] }),
  },
  triton: {
    path: '/v2/models/ensemble/generate_stream', source: 'event_count', finish: null, bodyEnds: true,
    identity: ['/v2', { name: 'triton', extensions: ['generate'] }], index: [{ name: 'ensemble' }],
    event: (i) => sse({ model_name: 'ensemble', text_output: word(i) }),
  },
  trtllm: {
    path: '/v1/completions', source: 'event_count', finish: 'length',
    event: (i) => (i + 1 < TOKENS ? completion(word(i)) : completion(upTo(i), 'length')),
    tail: () => 'data: [DONE]\n\n',
  },
  lightllm: {
    path: '/generate_stream', source: 'usage', finish: 'length',
    event: (i) => `data:${JSON.stringify({
      token: { id: i, text: word(i), special: false, count_output_tokens: i + 1, prompt_tokens: PROMPT_TOKENS },
      generated_text: null, finished: i + 1 === TOKENS, finish_reason: i + 1 === TOKENS ? 'length' : null, details: null })}\n\n`,
  },
};

const now = () => process.hrtime.bigint();
/** Calls back at `t` (ns): sleeps until 2 ms before, then spins through the event loop. */
function at(t, callback) {
  const left = Number(t - now()) / 1e6;
  if (left > 2.5) setTimeout(at, left - 2, t, callback);
  else if (left > 0) setImmediate(at, t, callback);
  else callback();
}

function answer(dialect, body, t0, response, log, cutAfter) {
  const headers = dialect.type === '' ? {} : { 'Content-Type': dialect.type ?? 'text/event-stream' };
  response.writeHead(200, headers);
  if (dialect.head) response.write(dialect.head);
  const step = (i) => {
    at(t0 + BigInt(Math.round((TTFT_MS + i * ITL_MS) * 1e6)), () => {
      if (i === cutAfter) {
        response.socket.destroy();
        return;
      }
      log.sent.push(String(now()));
      response.write(dialect.event(i, body));
      if (i + 1 < TOKENS) step(i + 1);
      else response.end(dialect.tail ? dialect.tail() : undefined);
    });
  };
  step(0);
}

/** Every fifth request of a body whose "seed" is 666 is cut after 4 tokens. */
export function serve(name) {
  const dialect = DIALECTS[name];
  const requests = {};
  let count = 0;
  const server = http.createServer((request, response) => {
    const t0 = now();
    const json = (object) => response.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(object));
    let text = '';
    request.on('data', (piece) => { text += piece; });
    request.on('end', () => {
      if (dialect.identity && request.method === 'GET' && request.url === dialect.identity[0]) return json(dialect.identity[1]);
      if (dialect.index && request.url === '/v2/repository/index') return json(dialect.index);
      if (request.method !== 'POST' || request.url !== dialect.path) return response.writeHead(404).end('no such page');
      const body = JSON.parse(text);
      if (dialect.requires && !(dialect.requires in body)) return response.writeHead(400).end('a field is missing');
      const log = { sent: [], body };
      const id = request.headers['x-request-id'];
      if (id) requests[id] = log;
      answer(dialect, body, t0, response, log, body.seed === 666 && ++count % 5 === 0 ? 4 : -1);
    });
  });
  server.on('connection', (socket) => socket.setNoDelay(true));
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () =>
    resolve({ url: `http://127.0.0.1:${server.address().port}`, requests })));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { url, requests } = await serve(process.argv[2]);
  process.on('SIGTERM', () => {
    writeFileSync(process.argv[3], JSON.stringify(requests));
    process.exit(0);
  });
  process.stderr.write(`listening on ${url}\n`);
}
