// `prony simulate` from outside: a record that is one, equal for any number of threads, sane limits, refusals.
// Usage: node simulate.test.mjs PATH/TO/prony
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { run } from './process.mjs';
import { schemaFaults } from './schema.mjs';

const prony = path.resolve(process.argv[2]);
const scratch = mkdtempSync(path.join(tmpdir(), 'prony-simulate-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
const BASE = ['--model', 'llama-3.1-8b', '--hardware', 'h100-sxm', '--engine', 'vllm'];
async function simulate(...args) {
  const got = await run(prony, ['simulate', ...BASE, '--json', ...args]);
  assert.equal(got.code, 0, got.stderr);
  const record = JSON.parse(got.stdout);
  assert.deepEqual(schemaFaults(record, 'prony.record.1'), []);
  assert.equal(record.source, 'simulated');
  return record;
}

const out = path.join(scratch, 'out');
const four = await simulate('--replicas', '4', '--router', 'round-robin', '--dataset', 'azure', '--time-scale', '1', '--request-rate', '30',
  '--num-prompts', '400', '--max-num-seqs', '64', '--max-num-batched-tokens', '2048', '--out', out);
assert.equal(four.metrics.attempted, 400);
assert.equal(four.metrics.completed, 400);
assert.equal(four.system.details.replicas, 4);
assert.ok(four.metrics.itl_ms.p50 > 1 && four.metrics.ttft_ms.mean > four.metrics.itl_ms.p50);
assert.ok(four.simulation.simulated_requests_per_s > 100);
for (const name of ['record.json', 'requests.jsonl', 'report.html']) assert.ok(existsSync(path.join(out, name)), name);
const rows = readFileSync(path.join(out, 'requests.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
assert.equal(rows.length, 400);
assert.equal(rows.reduce((sum, row) => sum + row.output_tokens, 0), four.metrics.output_tokens.got);

// Absent flags: the trace's own times and all of its rows.
const whole = await simulate('--replicas', '2', '--dataset', 'azure');
assert.equal(whole.workload.arrival, 'trace');
assert.ok(whole.workload.num_requests > 400);

// Equal for any number of threads, and pooled.
const many = [];
for (const threads of ['1', '2', '8']) {
  many.push(await simulate('--replicas', '2', '--request-rate', '20', '--num-prompts', '100', '--input-len', '256', '--output-len', '32',
    '--replications', '4', '--threads', threads, '--seed', '5'));
}
for (const record of many) {
  assert.deepEqual(record.metrics, many[0].metrics);
  assert.deepEqual(record.replications, many[0].replications);
}
assert.equal(many[0].metrics.attempted, 400);
assert.deepEqual(many[0].replications.map(({ seed }) => seed), [5, 6, 7, 8]);

// A replica more never hurts; a closed loop keeps its users; shared prefixes are found.
const load = ['--request-rate', '60', '--num-prompts', '300', '--input-len', '1500', '--output-len', '100', '--router', 'least-outstanding'];
const [one, two] = [await simulate(...load, '--replicas', '1'), await simulate(...load, '--replicas', '2')];
assert.ok(two.metrics.e2e_ms.mean < one.metrics.e2e_ms.mean);
const closed = await simulate('--max-concurrency', '16', '--num-prompts', '128', '--input-len', '512', '--output-len', '64');
assert.equal(closed.metrics.concurrency_max, 16);
const shared = await simulate('--request-rate', '20', '--num-prompts', '200', '--input-len', '100', '--random-prefix-len', '800',
  '--prefix-groups', '2', '--replicas', '2', '--router', 'prefix');
assert.ok(shared.simulation.prefix_hit_tokens > 0.8 * 0.88 * shared.simulation.prefix_query_tokens, 'most prefixes are found');

for (const [args, text, code] of [
  [['--router', 'best'], "--router: found 'best'", 2],
  [['--replicas', '0'], '--replicas: found 0', 2],
  [['--hardware', 'l4', '--model', 'llama-3.1-70b'], 'does not fit on 1 x l4', 2],
  [['--step-time-profile', '/no/such'], '/no/such: no such file or folder', 2],
  [['--request-rate', '5', '--num-prompts', '50', '--slo', 'ttft_p50<=1ms'], 'failed ', 1]]) {
  const got = await run(prony, ['simulate', ...BASE, ...args]);
  assert.equal(got.code, code, got.stderr);
  assert.ok(got.stderr.includes(text), `${got.stderr} should say ${text}`);
}
console.log(`simulate: ${Math.round(four.simulation.simulated_requests_per_s)} requests/s of 400, ` +
  `TTFT mean ${four.metrics.ttft_ms.mean.toFixed(1)} ms`);
