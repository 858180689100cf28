// `prony bench` against a server that is not ours (foreign_server.mjs), one run a case: statuses and
// counts exactly, every token's arrival against the server's own stamps, and every number of the
// record against the rows it came from, computed again here.
// Usage: node bench_foreign.test.mjs PATH/TO/prony [CASE...]
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { CASES, ITL_MS, TOKENS, TTFT_MS } from './foreign_server.mjs';
import { run, startServer } from './process.mjs';

process.setMaxListeners(100);  // one exit hook a server
const prony = path.resolve(process.argv[2]);
const here = path.dirname(fileURLToPath(import.meta.url));
const scratch = mkdtempSync(path.join(tmpdir(), 'prony-foreign-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
const REQUESTS = 20;

// What each case must give. `status`: of every request, or a function of the row's number on the
// server's side. `tokens`, `events`: of each request that got any.
const ok = { status: 'ok', tokens: TOKENS, events: TOKENS, source: 'usage', exact: true, itl: ITL_MS };
const EXPECTED = {
  role_chunk_at_once: ok,
  usage_missing: { ...ok, source: 'event_count', exact: false },
  crlf: ok,
  // 70 small segments an event: TCP itself holds some back (congestion window, auto-corking).
  three_byte_pieces: { ...ok, lateMs: 10 },
  three_byte_pieces_raw: { ...ok, lateMs: 10 },
  until_close: ok,
  closed_after_each: ok,
  closed_unannounced: ok,
  no_done_marker: ok,
  // Only the total is known: 16 tokens in 4 events. ITL is ICL then, and marked so.
  four_tokens_a_chunk: { ...ok, events: TOKENS / 4, exact: false, itl: 4 * ITL_MS },
  // Usage in every chunk says which event holds how many.
  four_tokens_counted: { ...ok, events: TOKENS / 4, firstTokens: 4 },
  reasoning_first: { ...ok, reasoning: true },
  error_in_stream: { status: 'stream_error', tokens: 4, events: 4, source: 'event_count' },
  closed_half_way: { status: 'truncated', tokens: TOKENS / 2, events: TOKENS / 2, source: 'event_count' },
  no_token_at_all: { status: 'empty', tokens: 0, events: 0, source: 'event_count' },
  stall: { status: 'timeout_stall', tokens: 4, events: 4, source: 'event_count' },
  silent: { status: 'timeout_ttft', tokens: null, events: 0, source: 'none', args: ['--first-token-timeout', '1'] },
  json_instead: { status: 'not_stream', tokens: null, events: 0, source: 'none' },
  every_fifth_503: { ...ok, failing: { status: 'http_5xx', count: REQUESTS / 5 }, http: { 503: REQUESTS / 5 } },
};
assert.deepEqual(Object.keys(EXPECTED).sort(), Object.keys(CASES).sort());

const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;
function quantile(values, q) {
  const sorted = [...values].sort((a, b) => a - b);
  const at = q * (sorted.length - 1), low = Math.floor(at);
  return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
}
const near = (got, want, tolerance, what) =>
  assert.ok(Math.abs(got - want) <= tolerance, `${what}: got ${got}, expected ${want} +- ${tolerance}`);

// Nanoseconds since boot pass 2^53 only after 104 days; differences of them are taken exactly.
function readRows(file) {
  const exact = readFileSync(file, 'utf8').replace(/("t_\w+_ns":)(\d+)/g, '$1"$2"')
    .replace(/\[(\d+),(\d+),(\d+)\]/g, '["$1","$2",$3]');
  return exact.trim().split('\n').map((line) => JSON.parse(line));
}
const span = (from, to) => Number(BigInt(to) - BigInt(from)) / 1e6;

/** One latency of the record against the values it should hold. */
function checkLatency(name, stats, values) {
  assert.equal(stats.n, values.length, `${name}.n`);
  if (values.length === 0) return;
  near(stats.mean, mean(values), 1e-6, `${name}.mean`);
  near(stats.p50, quantile(values, 0.5), 1e-6, `${name}.p50`);
  near(stats.p75, quantile(values, 0.75), 1e-6, `${name}.p75`);
  near(stats.max, Math.max(...values), 1e-6, `${name}.max`);
  const p90 = values.length * 0.1 >= 10 - 1e-9 ? quantile(values, 0.9) : null;
  if (p90 === null) assert.equal(stats.p90, null);
  else near(stats.p90, p90, 1e-6, `${name}.p90`);
}

/** How far each arrival lies after the system call that wrote it [ms]; never before it began. */
function arrivalErrors(row, writes) {
  return row.events.map(([kernel], i) => {
    const [before, after] = writes[i];
    assert.ok(span(before, kernel) >= -0.05, `${row.id}: event ${i} arrived before it was written`);
    return Math.max(0, span(after, kernel));
  });
}

function checkRow(row, log, expected, failing) {
  const want = failing ?? expected;
  assert.equal(row.status, want.status, `${row.id}: ${row.error}`);
  assert.equal(row.error === null || row.error === '', want.status === 'ok', row.error);
  if (failing) return;
  assert.equal(row.output_tokens, expected.tokens);
  assert.equal(row.token_source, expected.source);
  assert.equal(row.events.length, expected.events);
  if (expected.exact !== undefined) assert.equal(row.tokens_per_event_exact, expected.exact);
  assert.equal(log.writes.length, expected.events, 'the server wrote as many token events');
  assert.ok(span(row.t_send_ns, log.t_received) >= 0, 'sent before it was received');
  if (expected.events === 0) return;
  assert.equal(row.t_first_token_ns, row.events[0][0]);
  assert.equal(row.t_last_token_ns, row.events.at(-1)[0]);
  assert.ok(row.ttft_ms >= TTFT_MS, `ttft ${row.ttft_ms}: the role chunk is no token`);
  if (expected.reasoning) {
    assert.equal(row.t_first_output_ns, row.events[TOKENS / 2][0]);
  } else {
    assert.equal(row.t_first_output_ns, row.t_first_token_ns);
  }
  if (expected.status === 'timeout_stall') near(span(row.t_last_token_ns, row.t_close_ns), 2000, 300, 'stall');
}

function checkMetrics(metrics, rows, expected) {
  const good = rows.filter((row) => row.status === 'ok');
  assert.equal(metrics.attempted, REQUESTS);
  assert.equal(metrics.completed, good.length);
  assert.equal(metrics.failed, REQUESTS - good.length);
  const errors = {};
  for (const row of rows) if (row.status !== 'ok') errors[row.status] = (errors[row.status] ?? 0) + 1;
  assert.deepEqual(metrics.errors, errors);
  assert.deepEqual(metrics.http_errors, expected.http ?? {});

  const each = (value) => good.map(value);
  const first = expected.firstTokens ?? 1;
  checkLatency('ttft_ms', metrics.ttft_ms, each((r) => span(r.t_send_ns, r.t_first_token_ns)));
  checkLatency('ttft_intended_ms', metrics.ttft_intended_ms, each((r) => span(r.t_intended_ns, r.t_first_token_ns)));
  checkLatency('e2e_ms', metrics.e2e_ms, each((r) => span(r.t_send_ns, r.t_last_token_ns)));
  checkLatency('tpot_ms', metrics.tpot_ms,
               each((r) => span(r.t_first_token_ns, r.t_last_token_ns) / (r.output_tokens - first)));
  checkLatency('tpot_vllm_ms', metrics.tpot_vllm_ms,
               each((r) => span(r.t_first_token_ns, r.t_last_token_ns) / (r.output_tokens - 1)));
  const gaps = good.flatMap((r) => r.events.slice(1).map((e, i) => [span(r.events[i][0], e[0]), e[2]]));
  checkLatency('icl_ms', metrics.icl_ms, gaps.map(([gap]) => gap));
  checkLatency('itl_ms', metrics.itl_ms,
               expected.exact ? gaps.flatMap(([gap, k]) => Array(k).fill(gap / k)) : gaps.map(([gap]) => gap));
  if (good.length === 0) return;
  assert.equal(metrics.itl_basis, expected.exact ? 'tokens' : 'events');
  // The first token of an event of k is TTFT; every later one has its gap: N - n_first values.
  if (expected.exact) assert.equal(metrics.itl_ms.n, good.length * (TOKENS - first));
}

async function check(name) {
  const expected = EXPECTED[name];
  const stampsFile = path.join(scratch, `${name}.stamps`), out = path.join(scratch, name);
  const server = await startServer(process.execPath, [path.join(here, 'foreign_server.mjs'), name, stampsFile]);
  const bench = await run(prony, [
    'bench', '--base-url', server.url, '--endpoint-type', 'openai-chat', '--model', 'm',
    '--request-rate', '40', '--num-prompts', String(REQUESTS), '--stall-timeout', '2', '--seed', '1', '--json',
    '--out', out, '--save-detailed', ...(expected.args ?? [])]);
  await server.stop();
  const record = JSON.parse(bench.stdout);  // exactly one document
  const stamps = JSON.parse(readFileSync(stampsFile, 'utf8'));
  const rows = readRows(path.join(out, 'requests.jsonl'));

  assert.equal(rows.length, REQUESTS);
  assert.equal(Object.keys(stamps).length, REQUESTS, 'each request was sent once');
  let failing = 0;
  const errors = [];
  for (const row of rows) {
    const log = stamps[row.id];
    assert.ok(log, `the server saw ${row.id}`);
    const fails = expected.failing && row.status === expected.failing.status;
    failing += fails ? 1 : 0;
    checkRow(row, log, expected, fails ? expected.failing : undefined);
    // Merged events of a late client or a late server have lost their own stamps, and said so.
    if (!fails && row.merged_events === 0) errors.push(...arrivalErrors(row, log.writes));
  }
  if (expected.failing) assert.equal(failing, expected.failing.count);
  checkMetrics(record.metrics, rows, expected);
  assert.equal(record.schema, 'prony.record/1');
  assert.equal(record.source, 'measured');

  const completed = record.metrics.completed > 0;
  const code = completed && record.validity.valid ? 0 : 1;
  assert.equal(bench.code, code, bench.stderr);
  assert.equal(bench.stderr.includes('invalid'), completed && !record.validity.valid, bench.stderr);

  let accuracy = '';
  if (errors.length > 0) {
    const p50 = quantile(errors, 0.5), p90 = quantile(errors, 0.9), most = Math.max(...errors);
    accuracy = `${errors.length} arrivals after their write by p50 ${p50.toFixed(3)} p90 ${p90.toFixed(3)} ` +
      `max ${most.toFixed(3)} ms`;
    // The kernel stamps a packet inside the sender's system call; a busy host may defer a few.
    assert.ok(p50 <= (expected.lateMs ?? 0.1), accuracy);
    assert.ok(p90 <= (expected.lateMs ?? 1), accuracy);
  }
  console.log(`ok   ${name.padEnd(22)} ${accuracy}`);
}

const names = process.argv.slice(3);
for (const name of names.length ? names : Object.keys(EXPECTED)) {
  try {
    await check(name);
  } catch (error) {
    console.log(`FAIL ${name}: ${error.stack}`);
    process.exitCode = 1;
  }
}
