// 10,000 streams over sockets, most of them damaged in HTTP, in SSE or in JSON, in random pieces: what
// each of them is worth is known as it is made, and the bench must say the same of each. No crash, no
// hang, no success miscounted.
// Usage: node bench_fuzzed.test.mjs PATH/TO/prony [SEED]
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { run } from './process.mjs';

const prony = path.resolve(process.argv[2]);
const STREAMS = 10_000;
let state = Number(process.argv[3] ?? 20261201) >>> 0;
/** A whole number in [0, n): xorshift, so that a seed repeats the run. */
function below(n) {
  state ^= state << 13; state >>>= 0;
  state ^= state >>> 17;
  state ^= state << 5; state >>>= 0;
  return state % n;
}
const pick = (list) => list[below(list.length)];

const chunk = (delta, finish = null) =>
  JSON.stringify({ id: 'x', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] });
const words = () => Array.from({ length: 1 + below(8) }, () => `data: ${chunk({ content: pick([' sea', 'é', '海', '"', '\u2028']) })}\n\n`);
const FINISH = `data: ${chunk({}, 'stop')}\n\n`, DONE = 'data: [DONE]\n\n';
const OK_HEAD = 'HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n';

const chunked = (body, { extension = '', trailer = '' } = {}) => {
  let out = '';
  const bytes = Buffer.from(body);
  for (let at = 0; at < bytes.length;) {
    const size = Math.min(bytes.length - at, 1 + below(200));
    out += `${size.toString(16)}${extension}\r\n${bytes.subarray(at, at + size).toString('latin1')}\r\n`;
    at += size;
  }
  return `${out}0\r\n${trailer}\r\n`;
};
const whole = (list) => `${list.join('')}${FINISH}${DONE}`;
const asChunks = (body, more) => `${OK_HEAD}Transfer-Encoding: chunked\r\n\r\n${chunked(body, more)}`;
const counted = (body, length = Buffer.byteLength(body)) =>
  `${OK_HEAD}Content-Length: ${length}\r\n\r\n${Buffer.from(body).toString('latin1')}`;
const status = (line, body, type = 'application/json') =>
  `HTTP/1.1 ${line}\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
const latin = (body) => Buffer.from(body).toString('latin1');

/** One answer: {bytes: latin1 text, end: keep|fin|reset|hang, tokens: of a success, else null}. */
const KINDS = {
  good: (w) => ({ bytes: asChunks(whole(w)), tokens: w.length }),
  goodExtended: (w) => ({ bytes: asChunks(whole(w), { extension: ';a=b', trailer: 'X-Trailer: 1\r\n' }), tokens: w.length }),
  goodCounted: (w) => ({ bytes: counted(whole(w)), tokens: w.length }),
  goodUntilClose: (w) => ({ bytes: `${OK_HEAD}Connection: close\r\n\r\n${latin(whole(w))}`, end: 'fin', tokens: w.length }),
  goodContinue: (w) => ({ bytes: `HTTP/1.1 100 Continue\r\n\r\n${asChunks(whole(w))}`, tokens: w.length }),
  goodNoDone: (w) => ({ bytes: asChunks(w.join('') + FINISH), tokens: w.length }),
  goodComments: (w) => ({ bytes: asChunks(`: ping\n\nid: 7\n${whole(w)}`), tokens: w.length }),
  goodCarriage: (w) => ({ bytes: asChunks(whole(w).replaceAll('\n', '\r\n')), tokens: w.length }),
  noMarker: (w) => ({ bytes: asChunks(w.join('')) }),
  noTokens: () => ({ bytes: asChunks(FINISH + DONE) }),
  cut: (w) => {
    const body = asChunks(whole(w));
    const marker = body.indexOf('stop');
    return { bytes: body.slice(0, below(marker)), end: pick(['fin', 'reset']) };
  },
  cutCounted: (w) => ({ bytes: counted(w.join(''), 100_000), end: 'fin' }),
  badChunkSize: (w) => ({ bytes: `${OK_HEAD}Transfer-Encoding: chunked\r\n\r\n${pick(['zz', '-5', 'ffffffffffffffffff', ''])}\r\n${latin(w[0])}`, end: 'fin' }),
  badStatusLine: () => ({ bytes: pick(['HTTP/9 huh\r\n\r\n', 'ICY 200 OK\r\n\r\n', '\0\0\0\0', 'HTTP/1.1 \r\n\r\n', '{"error":1}\r\n\r\n']), end: 'fin' }),
  endlessHeader: () => ({ bytes: `HTTP/1.1 200 OK\r\nX: ${'y'.repeat(300_000)}`, end: 'fin' }),
  httpError: () => ({ bytes: status(pick(['500 No', '429 Slow', '503 Busy', '404 Gone', '301 Away', '204 Nothing']), '') }),
  htmlPage: () => ({ bytes: status('200 OK', '<html>hello</html>', 'text/html') }),
  jsonDocument: () => ({ bytes: status('200 OK', '{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}') }),
  emptyBody: () => ({ bytes: counted('') }),
  errorEvent: (w) => ({ bytes: asChunks(`${w.join('')}data: {"error":{"message":"boom"}}\n\n${DONE}`) }),
  errorField: (w) => ({ bytes: asChunks(`event: error\ndata: boom\n\n${whole(w)}`) }),
  brokenJson: (w) => {
    const damaged = pick(['{', '}', '"choices"', ':', '[']);
    const all = [...w];
    const at = below(all.length);
    all[at] = `data: ${all[at].slice(6).replace(damaged, damaged === '"choices"' ? 'choices' : '')}`;
    return { bytes: asChunks(whole(all)) };
  },
  wrongTypes: (w) => ({ bytes: asChunks(`${w.join('')}data: ${pick(['7', '[]', '"x"', '{"choices":7}', '{"choices":[7]}', '{"choices":[{"delta":{"content":{}}}]}'])}\n\n${FINISH}${DONE}`) }),
  binary: () => ({ bytes: asChunks(Array.from({ length: 400 }, () => String.fromCharCode(below(256))).join('').replaceAll('\n', ' ')) }),
  bareFin: () => ({ bytes: '', end: 'fin' }),
  bareReset: () => ({ bytes: '', end: 'reset' }),
};
const NAMES = Object.keys(KINDS);
// Each of them waits for its time-out, so they are few.
const HANGS = { silent: () => ({ bytes: '', end: 'hang' }), stalled: (w) => ({ bytes: asChunks(w.join('') + FINISH).slice(0, below(150)), end: 'hang' }) };

/** By X-Request-Id: a request that is sent again gets the same answer. */
const truths = new Map();
function answerTo(id) {
  if (!truths.has(id)) {
    const hang = below(400) === 0;
    const kind = hang ? pick(Object.keys(HANGS)) : pick(NAMES);
    truths.set(id, { kind, ...(hang ? HANGS : KINDS)[kind](words()) });
  }
  return truths.get(id);
}

function reply(socket, { bytes, end = 'keep' }) {
  const buffer = Buffer.from(bytes, 'latin1');
  const cuts = buffer.length > 20_000 || below(2) === 0 ? 0 : 1 + below(3);
  const send = (at, left) => {
    const to = left === 0 ? buffer.length : Math.min(buffer.length, at + 1 + below(buffer.length));
    if (to > at) socket.write(buffer.subarray(at, to));
    if (to < buffer.length) return setImmediate(send, to, Math.max(0, left - 1));
    if (end === 'fin') socket.end();
    if (end === 'reset') setImmediate(() => socket.resetAndDestroy());
  };
  send(0, buffer.length === 0 ? 0 : cuts);
}

const server = createServer((socket) => {
  let pending = Buffer.alloc(0);
  socket.setNoDelay(true);
  socket.on('error', () => {});
  socket.on('data', (piece) => {
    pending = Buffer.concat([pending, piece]);
    for (;;) {
      const head = pending.indexOf('\r\n\r\n');
      if (head < 0) return;
      const text = pending.subarray(0, head).toString('latin1');
      const length = Number(/content-length: (\d+)/i.exec(text)?.[1] ?? 0);
      if (pending.length < head + 4 + length) return;
      pending = pending.subarray(head + 4 + length);
      const id = /x-request-id: (\S+)/i.exec(text)?.[1];
      if (id) reply(socket, answerTo(id));
      else socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n');
    }
  });
});
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const out = mkdtempSync(path.join(tmpdir(), 'prony-fuzzed-'));
process.once('exit', () => rmSync(out, { recursive: true, force: true }));

const begin = Date.now();
const result = await run(prony, ['bench', '--base-url', `http://127.0.0.1:${server.address().port}`, '--endpoint-type', 'openai-chat',
  '--model', 'm', '--tokenizer', 'byte', '--request-rate', 'inf', '--max-concurrency', '300', '--num-prompts', String(STREAMS),
  '--input-len', '8', '--output-len', '4', '--first-token-timeout', '3', '--stall-timeout', '3', '--connect-timeout', '10',
  '--save-detailed', '--on-invalid', 'warn', '--progress', 'off', '--json', '--out', out], { timeoutMs: 240_000 });
server.close();
assert.ok(result.code === 0 || result.code === 1, `exit ${result.code}: ${result.stderr}`);
const record = JSON.parse(result.stdout);
const rows = readFileSync(path.join(out, 'requests.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
assert.equal(rows.length, STREAMS);

const wrong = new Map(), seen = new Map();
for (const row of rows) {
  const truth = truths.get(row.id);
  assert.ok(truth || row.status !== 'ok', `request ${row.index} was never asked, and is a success`);
  if (!truth) continue;
  const good = (truth.tokens ?? null) !== null;
  seen.set(truth.kind, (seen.get(truth.kind) ?? 0) + 1);
  const events = row.output_tokens;  // counted by events: these servers say no usage
  const right = good === (row.status === 'ok') && (!good || events === truth.tokens) && (good || row.error !== '');
  if (!right && !wrong.has(truth.kind)) {
    wrong.set(truth.kind, `${truth.kind}: found ${row.status} (${row.error}) of ${events} tokens, expected ` +
      `${good ? `ok of ${truth.tokens}` : 'a failure with its reason'}: ${JSON.stringify(truth.bytes.slice(0, 400))} ${truth.end ?? ''}`);
  }
}
assert.deepEqual([...wrong.values()], []);
for (const name of NAMES) assert.ok(seen.get(name) > 100, `${name} was played ${seen.get(name)} times`);
assert.equal(record.metrics.completed, rows.filter((row) => row.status === 'ok').length);
assert.equal(record.metrics.failed, STREAMS - record.metrics.completed);
console.log(`${STREAMS} streams of ${NAMES.length + 2} kinds in ${((Date.now() - begin) / 1000).toFixed(1)} s: ` +
  `${record.metrics.completed} successes, as made; ${JSON.stringify(record.metrics.errors)}`);
