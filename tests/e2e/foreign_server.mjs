// A server that is not ours: plain node, raw sockets, OpenAI-like chat streams of exactly known
// timing, each case one thing that real servers do. It stamps each write before and after the
// system call (CLOCK_MONOTONIC, as the client's stamps are) and keeps the stamps by X-Request-Id.
//
//   node foreign_server.mjs CASE FILE     prints "listening on URL" on stderr; on SIGTERM it writes
//                                         its stamps to FILE as one JSON document and ends.
//
// Every stream's deadlines are absolute, from the receipt of its request: tokens at TTFT, TTFT +
// ITL, ... A stretch of spinning before each makes them exact to some microseconds on a quiet host.
import { writeFileSync } from 'node:fs';
import net from 'node:net';
import { pathToFileURL } from 'node:url';

export const TTFT_MS = 50, ITL_MS = 10, TOKENS = 16;

const now = () => process.hrtime.bigint();
const ms = (value) => BigInt(Math.round(value * 1e6));

/** Calls back at `t` (ns): sleeps until 2 ms before, then spins through the event loop. */
function at(t, callback) {
  const left = Number(t - now()) / 1e6;
  if (left > 2.5) setTimeout(at, left - 2, t, callback);
  else if (left > 0) setImmediate(at, t, callback);
  else callback();
}

const chunk = (delta, finish = null, usage = undefined) => JSON.stringify({
  id: 'chatcmpl-foreign', object: 'chat.completion.chunk', created: 1700000000, model: 'm',
  choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
  ...(usage ? { usage } : {}),
});
const usageOf = (tokens) => ({ prompt_tokens: 9, completion_tokens: tokens, total_tokens: 9 + tokens });
const usageChunk = (tokens) =>
  JSON.stringify({ id: 'chatcmpl-foreign', object: 'chat.completion.chunk', choices: [], usage: usageOf(tokens) });
const sse = (data, eol = '\n') => `data: ${data}${eol}${eol}`;

/** One answer being written; every write is stamped. */
class Answer {
  constructor(socket, log, options) {
    this.socket = socket;
    this.log = log;
    this.chunked = options.chunked ?? true;
    this.pieces = options.pieces ?? 0;
  }
  raw(bytes, then) {
    if (!this.socket.destroyed) this.socket.write(bytes, then);
  }
  head(type = 'text/event-stream', extra = '') {
    this.raw(`HTTP/1.1 200 OK\r\nContent-Type: ${type}\r\n${extra}` +
             (this.chunked ? 'Transfer-Encoding: chunked\r\n' : '') + '\r\n');
  }
  /** `tokens` > 0: a token-bearing event, whose stamps are kept; `then` when it is written. */
  event(text, tokens = 0, then = () => {}) {
    const before = now();
    const bytes = Buffer.from(text);
    const size = this.pieces || bytes.length;
    const framed = (piece) => (this.chunked
      ? Buffer.concat([Buffer.from(`${piece.length.toString(16)}\r\n`), piece, Buffer.from('\r\n')])
      : piece);
    const written = () => {
      if (tokens > 0) this.log.writes.push([String(before), String(now()), tokens]);
      then();
    };
    if (!this.pieces) {
      this.raw(framed(bytes));
      written();
      return;
    }
    // Node would join what is written in one turn: each piece waits for the one before.
    const step = (i) => {
      if (i >= bytes.length) written();
      else this.raw(framed(bytes.subarray(i, i + size)), () => step(i + size));
    };
    step(0);
  }
  end(close = false) {
    if (this.chunked) this.raw('0\r\n\r\n');
    if (close || !this.chunked) this.socket.end();
  }
}

/** Streams `chunks` ([event, tokens]) from TTFT on, `gap` apart, then calls `last`. One after the
 *  other: timers that are late together have no order. */
function stream(answer, t0, chunks, gapMs, last, i = 0) {
  if (i === chunks.length) return last();
  at(t0 + ms(TTFT_MS + i * gapMs),
     () => answer.event(...chunks[i], () => stream(answer, t0, chunks, gapMs, last, i + 1)));
}
const words = (n, eol) => Array.from({ length: n }, (_, i) => [sse(chunk({ content: ` w${i}` }), eol), 1]);
const role = (eol) => sse(chunk({ role: 'assistant', content: '' }), eol);
/** finish chunk, usage if `tokens`, [DONE], end of the body. */
function close(answer, tokens, { eol = '\n', closeSocket = false, done = true } = {}) {
  const rest = [sse(chunk({}, 'length'), eol)];
  if (tokens) rest.push(sse(usageChunk(tokens), eol));
  if (done) rest.push(`data: [DONE]${eol}${eol}`);
  const next = () => (rest.length ? answer.event(rest.shift(), 0, next) : answer.end(closeSocket));
  next();
}

// Each case: (socket, log, t0, number of the request, body) => writes the answer.
const plain = (options = {}, ending = {}) => (socket, log, t0) => {
  const answer = new Answer(socket, log, options);
  answer.head('text/event-stream', ending.announced ? 'Connection: close\r\n' : '');
  answer.event(role(ending.eol), 0, () =>
    stream(answer, t0, words(TOKENS, ending.eol), ITL_MS,
           () => close(answer, ending.usage === false ? 0 : TOKENS, ending)));
};
const cut = (tokens, last) => (socket, log, t0) => {
  const answer = new Answer(socket, log, {});
  answer.head();
  answer.event(role());
  if (tokens === 0) at(t0 + ms(TTFT_MS), () => last(answer));
  else stream(answer, t0, words(tokens), ITL_MS, () => last(answer));
};
const respond = (socket, status, type, body) =>
  socket.write(`HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);

export const CASES = {
  role_chunk_at_once: plain(),
  usage_missing: plain({}, { usage: false }),
  crlf: plain({}, { eol: '\r\n' }),
  three_byte_pieces: plain({ pieces: 3 }),
  three_byte_pieces_raw: plain({ pieces: 3, chunked: false }),
  until_close: plain({ chunked: false }),
  closed_after_each: plain({}, { closeSocket: true, announced: true }),
  closed_unannounced: plain({}, { closeSocket: true }),
  no_done_marker: plain({}, { done: false }),
  four_tokens_a_chunk: (socket, log, t0) => {
    const answer = new Answer(socket, log, {});
    answer.head();
    answer.event(role());
    const chunks = Array.from({ length: TOKENS / 4 }, (_, i) => [sse(chunk({ content: ` a b c d${i}` })), 4]);
    stream(answer, t0, chunks, 4 * ITL_MS, () => close(answer, TOKENS));
  },
  four_tokens_counted: (socket, log, t0) => {
    const answer = new Answer(socket, log, {});
    answer.head();
    answer.event(sse(chunk({ role: 'assistant', content: '' }, null, usageOf(0))));
    const chunks = Array.from({ length: TOKENS / 4 },
                              (_, i) => [sse(chunk({ content: ` a b c d${i}` }, null, usageOf(4 * i + 4))), 4]);
    stream(answer, t0, chunks, 4 * ITL_MS, () => close(answer, TOKENS));
  },
  reasoning_first: (socket, log, t0) => {
    const answer = new Answer(socket, log, {});
    answer.head();
    answer.event(role());
    const chunks = Array.from({ length: TOKENS }, (_, i) =>
      [sse(chunk(i < TOKENS / 2 ? { reasoning_content: ` r${i}`, content: null } : { content: ` w${i}` })), 1]);
    stream(answer, t0, chunks, ITL_MS, () => close(answer, TOKENS));
  },
  error_in_stream: cut(4, (answer) => {
    answer.event(sse(JSON.stringify({ error: { message: 'engine died', type: 'InternalServerError', code: 500 } })));
    answer.event(sse('[DONE]'));
    answer.end();
  }),
  closed_half_way: cut(TOKENS / 2, (answer) => answer.socket.destroy()),
  no_token_at_all: cut(0, (answer) => close(answer, 0)),
  stall: cut(4, () => {}),
  silent: () => {},
  json_instead: (socket, log, t0) => at(t0 + ms(TTFT_MS), () =>
    respond(socket, '200 OK', 'application/json',
            JSON.stringify({ choices: [{ message: { role: 'assistant', content: 'all at once' } }], usage: usageOf(4) }))),
  every_fifth_503: (socket, log, t0, number) => {
    if (number % 5 === 0) {
      respond(socket, '503 Service Unavailable', 'application/json', '{"error":{"message":"overloaded","code":503}}');
    } else {
      plain()(socket, log, t0);
    }
  },
};

/** Serves `name` on a free port; resolves {url, requests: Map(id -> {t_received, writes})}. */
export function serve(name) {
  const answer = CASES[name];
  if (!answer) throw new Error(`unknown case '${name}', expected one of ${Object.keys(CASES).join(' ')}`);
  const requests = new Map();
  let count = 0;
  const server = net.createServer({ noDelay: true }, (socket) => {
    let buffered = Buffer.alloc(0);
    socket.on('error', () => {});
    socket.on('data', (bytes) => {
      const t0 = now();
      buffered = buffered.length ? Buffer.concat([buffered, bytes]) : bytes;
      for (;;) {
        const headEnd = buffered.indexOf('\r\n\r\n');
        if (headEnd < 0) return;
        const head = buffered.subarray(0, headEnd).toString();
        const length = Number(/^content-length: *(\d+)/im.exec(head)?.[1] ?? 0);
        if (buffered.length < headEnd + 4 + length) return;
        buffered = buffered.subarray(headEnd + 4 + length);
        if (!head.startsWith('POST ')) {
          respond(socket, '404 Not Found', 'text/plain', 'no such page');
          continue;
        }
        const log = { t_received: String(t0), writes: [] };
        requests.set(/^x-request-id: *(\S+)/im.exec(head)?.[1] ?? `unnamed-${count}`, log);
        answer(socket, log, t0, ++count);
      }
    });
  });
  return new Promise((resolve) => server.listen(0, '127.0.0.1', () =>
    resolve({ url: `http://127.0.0.1:${server.address().port}`, requests })));
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { url, requests } = await serve(process.argv[2]);
  process.on('SIGTERM', () => {
    writeFileSync(process.argv[3], JSON.stringify(Object.fromEntries(requests)));
    process.exit(0);
  });
  process.stderr.write(`listening on ${url}\n`);
}
