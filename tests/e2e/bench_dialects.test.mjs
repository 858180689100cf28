// `prony bench` against a server of each dialect (dialect_server.mjs): statuses, counts, texts and
// latencies against what the server wrote and when; the dialect named, and found by `auto`.
// Usage: node bench_dialects.test.mjs PATH/TO/prony [DIALECT...]
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { DIALECTS, ITL_MS, PROMPT_TOKENS, TOKENS, TTFT_MS } from './dialect_server.mjs';
import { run, startServer } from './process.mjs';

process.setMaxListeners(100);
const prony = path.resolve(process.argv[2]);
const here = path.dirname(fileURLToPath(import.meta.url));
const scratch = mkdtempSync(path.join(tmpdir(), 'prony-dialects-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
const REQUESTS = 10;
const TEXT = Array.from({ length: TOKENS }, (_, i) => ` w${i}`).join('');
// `auto` takes openai-completions for trtllm, which differs by a fault alone.
const AUTO_FINDS = (name) => (name === 'trtllm' ? 'openai-completions' : name);

const span = (from, to) => Number(BigInt(to) - BigInt(from)) / 1e6;
function readRows(file) {
  const exact = readFileSync(file, 'utf8').replace(/("t_\w+_ns":)(\d+)/g, '$1"$2"')
    .replace(/\[(\d+),(\d+),(\d+)\]/g, '["$1","$2",$3]');
  return exact.trim().split('\n').map((line) => JSON.parse(line));
}

async function bench(name, flags, expectCode = 0) {
  const stampsFile = path.join(scratch, 'stamps'), out = path.join(scratch, 'out');
  const server = await startServer(process.execPath, [path.join(here, 'dialect_server.mjs'), name, stampsFile]);
  const got = await run(prony, ['bench', '--base-url', server.url, '--request-rate', '30', '--num-prompts',
    String(REQUESTS), '--input-len', '20', '--output-len', String(TOKENS), '--seed', '1', '--json', '--out', out,
    '--save-detailed', '--save-text', '--on-invalid', 'warn', ...flags]);
  await server.stop();
  assert.equal(got.code, expectCode, got.stderr);
  return { record: JSON.parse(got.stdout), rows: readRows(path.join(out, 'requests.jsonl')),
           stamps: JSON.parse(readFileSync(stampsFile, 'utf8')), stderr: got.stderr };
}

function checkRow(row, log, dialect) {
  assert.equal(row.status, 'ok', row.error);
  assert.equal(row.events.length, TOKENS);
  assert.equal(row.output_tokens, TOKENS);
  assert.equal(row.token_source, dialect.source);
  assert.equal(row.finish_reason || null, dialect.finish);
  assert.equal(row.text, TEXT);
  assert.equal(row.prompt_tokens, dialect.source === 'usage' ? PROMPT_TOKENS : null);
  assert.equal(row.tokens_per_event_exact, dialect.source === 'usage');
  assert.ok(row.ttft_ms >= TTFT_MS, `ttft ${row.ttft_ms}`);
  assert.ok(BigInt(row.t_done_ns) >= BigInt(row.t_last_token_ns), 'done after the last token');
  // Each event belongs to its write: never before it. TPOT follows from the first and the last.
  row.events.forEach(([kernel], i) => assert.ok(span(log.sent[i], kernel) >= -0.05, `event ${i} came before its write`));
  const tpot = span(row.t_first_token_ns, row.t_last_token_ns) / (TOKENS - 1);
  assert.ok(Math.abs(row.tpot_ms - tpot) < 1e-6, `tpot ${row.tpot_ms}, expected ${tpot}`);
}

async function check(name) {
  const dialect = DIALECTS[name];
  const named = await bench(name, ['--endpoint-type', name, '--model', name === 'triton' ? 'ensemble' : 'm']);
  assert.equal(named.rows.length, REQUESTS);
  const late = [];
  for (const row of named.rows) {
    checkRow(row, named.stamps[row.id], dialect);
    if (row.merged_events === 0) row.events.forEach(([kernel], i) => late.push(span(named.stamps[row.id].sent[i], kernel)));
  }
  const { metrics, system } = named.record;
  assert.equal(system.endpoint_type, name);
  assert.equal(metrics.completed, REQUESTS);
  assert.equal(metrics.tpot_ms.n, REQUESTS);
  assert.equal(metrics.ttft_ms.n, REQUESTS);
  const mean = (of) => named.rows.reduce((sum, row) => sum + of(row), 0) / REQUESTS;
  assert.ok(Math.abs(metrics.ttft_ms.mean - mean((row) => span(row.t_send_ns, row.t_first_token_ns))) < 1e-6);
  assert.ok(Math.abs(metrics.tpot_ms.mean - ITL_MS) < ITL_MS / 2, `tpot ${metrics.tpot_ms.mean}`);
  assert.equal(metrics.itl_basis, dialect.source === 'usage' ? 'tokens' : 'events');

  const auto = await bench(name, dialect.identity ? [] : ['--model', 'm']);
  assert.equal(auto.record.system.endpoint_type, AUTO_FINDS(name));
  assert.equal(auto.record.metrics.completed, REQUESTS);
  assert.match(auto.stderr, new RegExp(`endpoint type ${AUTO_FINDS(name)}: .* gave a token`));

  const cut = await bench(name, ['--endpoint-type', name, '--model', name === 'triton' ? 'ensemble' : 'm',
    '--extra-body', '{"seed":666}']);
  assert.deepEqual(cut.record.metrics.errors, { truncated: REQUESTS / 5 });
  for (const row of cut.rows.filter((r) => r.status === 'truncated')) assert.equal(row.events.length, 4);

  late.sort((a, b) => a - b);
  console.log(`ok   ${name.padEnd(20)} ${late.length} arrivals after their write by p50 ` +
    `${late[Math.floor(late.length / 2)]?.toFixed(3)} ms; ttft ${metrics.ttft_ms.mean.toFixed(2)} tpot ${metrics.tpot_ms.mean.toFixed(3)} ms`);
}

const names = process.argv.slice(3);
for (const name of names.length ? names : Object.keys(DIALECTS)) {
  try {
    await check(name);
  } catch (error) {
    console.log(`FAIL ${name}: ${error.stack}`);
    process.exitCode = 1;
  }
}
