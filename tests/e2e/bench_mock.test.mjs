// `prony bench` against every fault that `prony mock` knows: the status of each request, the token
// counts, and that every run ends in bounded time.
// Usage: node bench_mock.test.mjs PATH/TO/prony [FAULT...]
import assert from 'node:assert/strict';
import path from 'node:path';
import { run, startServer } from './process.mjs';

process.setMaxListeners(1000);
const prony = path.resolve(process.argv[2]);
const REQUESTS = 5, TOKENS = 8;

// What a fault makes of every request; 'ok' with all tokens unless it says otherwise.
const ok = {};
const fails = (status, more = {}) => ({ status, ...more });
const EXPECTED = {
  'role-first': ok, 'role-null': ok, 'role-always': ok, 'multi-token': ok, 'varied-chunks': ok,
  'held-tokens': ok, 'giant-chunk': ok, coalesced: ok, reasoning: ok, 'reasoning-content': ok,
  'tool-call': ok, 'empty-events': ok, 'empty-first': ok, progress: ok, 'late-head': ok,
  'error-first': fails('stream_error'), 'error-mid': fails('stream_error', { tokens: TOKENS / 2 }),
  'error-mid-no-done': fails('stream_error'), 'error-field': fails('stream_error'),
  'abort-finish': fails('stream_error'), 'eof-mid': fails('truncated', { tokens: TOKENS / 2 }),
  'close-mid': fails('truncated'), 'close-in-event': fails('truncated'), 'reset-mid': fails('truncated'),
  'zero-tokens': fails('empty'), 'done-only': fails('empty'), 'empty-body': fails('empty'),
  stall: fails('timeout_stall', { tokens: TOKENS / 2 }), 'no-first-token': fails('timeout_ttft'),
  hang: fails('timeout_ttft'),
  'short-answer': { tokens: TOKENS / 2, source: 'event_count' }, 'usage-absent': { source: 'event_count' },
  'usage-unasked': ok, 'usage-every-chunk': ok, 'usage-null': ok, 'usage-with-finish': ok,
  'text-with-finish': ok, 'no-finish': ok, 'no-done': ok, 'no-done-hang': ok, pings: ok,
  'multi-byte': ok, separators: ok, 'hostile-text': ok, 'huge-event': ok,
  'garbage-event': fails('parse'), 'no-choices': ok, crlf: ok, cr: ok, 'no-space': ok, 'multi-line': ok,
  bom: ok, fields: ok, 'no-final-blank': ok, 'pieces-1': ok, 'pieces-3': ok, 'split-utf8': ok,
  'chunk-extensions': ok, 'chunk-trailers': ok, 'raw-pieces': ok, 'until-close': ok, 'http-1.0': ok,
  503: fails('http_5xx', { http: 503 }), '503-fifth': { failing: { http_5xx: 1 } },
  // Only the answers to requests: /v1/models works, so the readiness check lets the run begin.
  loading: { failing: { http_5xx: 3 } }, 429: fails('http_4xx', { http: 429 }), 400: fails('http_4xx', { http: 400 }),
  '400-flat': fails('http_4xx', { http: 400 }), 404: fails('http_4xx', { http: 404 }),
  500: fails('http_5xx', { http: 500 }), 'html-502': fails('http_5xx', { http: 502 }),
  'json-200': fails('not_stream'), 'html-200': fails('not_stream'), 'not-http': fails('parse'),
  'short-body': fails('not_stream'), 'close-after': ok, 'close-announced': ok,
  'close-on-reuse': { args: ['--max-concurrency', '1'], retries: REQUESTS - 1 },
  'idle-close': ok,
};

async function check(fault) {
  const expected = EXPECTED[fault];
  assert.ok(expected, `no expectation for the fault ${fault}`);
  const mock = await startServer(prony, ['mock', '--port', '0', '--ttft-ms', '20', '--itl-ms', '2', '--fault', fault]);
  const bench = await run(prony, [
    'bench', '--base-url', mock.url, '--endpoint-type', 'openai-chat', '--model', 'mock',
    '--request-rate', 'inf', '--max-concurrency', String(REQUESTS), '--num-prompts', String(REQUESTS),
    '--input-len', '8', '--output-len', String(TOKENS), '--first-token-timeout', '1.5', '--stall-timeout', '0.7',
    '--on-invalid', 'warn', '--json', ...(expected.args ?? [])], { timeoutMs: 30_000 });
  await mock.stop();
  assert.notEqual(bench.stdout, '', `${bench.code}: ${bench.stderr}`);
  const { metrics, system } = JSON.parse(bench.stdout);
  assert.equal(system.kind, fault === 'not-http' ? system.kind : 'mock');
  const errors = expected.failing ?? (expected.status ? { [expected.status]: REQUESTS } : {});
  assert.deepEqual(metrics.errors, errors, bench.stderr);
  const failed = Object.values(errors).reduce((a, b) => a + b, 0);
  assert.equal(metrics.attempted, REQUESTS);
  assert.equal(metrics.failed, failed);
  assert.deepEqual(metrics.http_errors, 
    expected.http ? { [expected.http]: REQUESTS } : expected.failing ? { 503: failed } : {});
  assert.equal(bench.code, failed === REQUESTS ? 1 : 0, bench.stderr);
  const tokens = expected.tokens ?? TOKENS;
  if (failed < REQUESTS) {
    assert.equal(metrics.output_tokens.got, (REQUESTS - failed) * tokens);
    assert.deepEqual(Object.keys(metrics.token_sources), [expected.source ?? 'usage']);
    assert.ok(metrics.ttft_ms.min >= 19.9, `TTFT ${metrics.ttft_ms.min}`);
  } else {
    assert.equal(metrics.ttft_ms?.n ?? 0, 0, 'failures have no latency');
  }
  if (expected.retries !== undefined) assert.equal(metrics.retries, expected.retries);
}

const listed = (await run(prony, ['mock', '--list-faults'])).stdout.trim().split('\n').map((line) => line.split(' ')[0]);
assert.ok(listed.length > 50);
const faults = process.argv.length > 3 ? process.argv.slice(3) : listed;
let passed = 0;
async function worker() {
  for (let fault = faults.shift(); fault !== undefined; fault = faults.shift()) {
    try {
      await check(fault);
      ++passed;
    } catch (error) {
      console.log(`FAIL ${fault}: ${error.message}`);
      process.exitCode = 1;
    }
  }
}
await Promise.all([worker(), worker()]);
console.log(`${passed} faults as expected`);
