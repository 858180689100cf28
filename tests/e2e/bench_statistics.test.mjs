// `prony bench` as an instrument of statistics: it stops when a metric is known, says when it cannot
// know, tells an overload, speaks the words of other tools, and measures one stream alone.
// Usage: node bench_statistics.test.mjs PATH/TO/prony
import assert from 'node:assert/strict';
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { run, startServer } from './process.mjs';

const prony = path.resolve(process.argv[2]);
const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'prony-statistics-'));
const mock = await startServer(prony, ['mock', '--port', '0', '--ttft-ms', '20', '--itl-ms', '2']);

const bench = (...args) => run(prony, ['bench', '--base-url', mock.url, '--endpoint-type', 'openai-chat',
  '--model', 'mock', '--input-len', '8', '--on-invalid', 'warn', ...args], { timeoutMs: 60_000 });
async function record(...args) {
  const result = await bench('--json', ...args);
  assert.notEqual(result.stdout, '', result.stderr);
  return { ...JSON.parse(result.stdout), code: result.code, stderr: result.stderr };
}

// Stops long before its bound.
{
  const { client, metrics, code, stderr } = await record(
    '--request-rate', '100', '--output-len', '4', '--until-ci', 'ttft_p50=50%');
  assert.equal(code, 0, stderr);
  assert.equal(client.until_ci.reached, true);
  assert.ok(client.until_ci.n >= 64 && metrics.attempted < 1000, JSON.stringify(client.until_ci));
  assert.equal(metrics.failed, 0);
  assert.ok(metrics.ttft_ms.ci95.mean[0] <= metrics.ttft_ms.mean);
  assert.ok(metrics.ci95.request_throughput[1] > 0);
  assert.ok(Math.abs(metrics.little.residence_s - 0.026) < 0.02, JSON.stringify(metrics.little));
}

// The bound comes first, and is said; so is a percentile that needs more samples.
{
  const { client, validity, stderr, slo, code } = await record(
    '--max-concurrency', '4', '--num-prompts', '40', '--output-len', '2', '--until-ci', 'ttft_p99=1%',
    '--slo', 'ttft_p999<=5s,ttft_p50<=5s');
  assert.equal(client.until_ci.reached, false);
  assert.ok(validity.warnings.some((text) => text.includes('--until-ci: ttft_p99 within 1 %: not reached')));
  assert.match(stderr, /cannot judge --slo ttft_p999<=5000ms: got unknown \(9960 more samples are needed\)/);
  assert.equal(slo.terms[1].certain, true);
  assert.equal(code, 0);
}

// 100 requests/s through one place of 34 ms each: the queue grows until the end.
{
  const { metrics, validity } = await record(
    '--request-rate', '100', '--max-concurrency', '1', '--num-prompts', '150', '--output-len', '8');
  assert.equal(metrics.overloaded, true, JSON.stringify(metrics.queue_growth));
  assert.ok(metrics.queue_growth > 30, `${metrics.queue_growth}`);
  assert.ok(validity.warnings.some((text) => text.startsWith('overloaded: ')));
  // The omission that a closed loop would have made: the wait is in the intended form alone.
  assert.ok(metrics.ttft_intended_ms.mean > 5 * metrics.ttft_ms.mean);
}

// Other tools' words.
{
  const out = path.join(folder, 'result');
  const result = await bench('--max-concurrency', '2', '--num-prompts', '6', '--output-len', '4', '--compat', 'all',
    '--save-result', '--save-detailed', '--result-dir', out, '--result-filename', 'r.json',
    '--percentile-metrics', 'ttft,e2el', '--metric-percentiles', '50,99.9', '--metadata', 'gpu=none');
  assert.equal(result.code, 0, result.stderr);
  for (const words of ['as vllm defines it', 'as aiperf defines it', 'as guidellm defines it',
    'contains TTFT', 'TTFT from the intention']) {
    assert.ok(result.stdout.includes(words), `${words}: ${result.stdout}`);
  }
  const saved = JSON.parse(await fs.readFile(path.join(out, 'r.json'), 'utf8'));
  assert.equal(saved.completed, 6);
  assert.equal(saved.gpu, 'none');
  assert.equal(saved.max_concurrency, 2);
  assert.equal(saved.request_rate, 'inf');
  assert.equal(saved.ttfts.length, 6);
  assert.ok(saved.ttfts.every((s) => s > 0.015 && s < 2), 'seconds');
  assert.ok(saved['p99.9_ttft_ms'] > 15, 'milliseconds');
  assert.equal(saved.mean_itl_ms, undefined);
  assert.deepEqual(saved.output_lens, [4, 4, 4, 4, 4, 4]);
  const bad = await bench('--percentile-metrics', 'ttft,x');
  assert.equal(bad.code, 2);
  assert.match(bad.stderr, /--percentile-metrics: found 'x', expected ttft, tpot, itl or e2el/);
}

// One stream alone; a server that stops early is told.
{
  const args = ['--preset', 'single-stream', '--num-prompts', '4', '--output-len', '16'];
  const { metrics, workload } = await record(...args);
  assert.equal(metrics.concurrency_max, 1);
  assert.equal(workload.details.num_warmups, 3);
  assert.equal(workload.details.temperature, 0);
  assert.ok(metrics.prefill_tokens_per_s.mean > 0);
  assert.ok(Math.abs(metrics.tpot_ms.p50 - 2) < 1.5, `${metrics.tpot_ms.p50}`);
  const table = await bench(...args);
  for (const words of ['ms to the first token', 'prompt tokens/s', '4 of 4 answers had the 16 tokens asked']) {
    assert.ok(table.stdout.includes(words), table.stdout);
  }
  const short = await startServer(prony, ['mock', '--port', '0', '--ttft-ms', '5', '--itl-ms', '1',
    '--fault', 'short-answer']);
  const early = await run(prony, ['bench', '--base-url', short.url, '--endpoint-type', 'openai-chat', '--model',
    'mock', '--on-invalid', 'warn', ...args]);
  await short.stop();
  assert.match(early.stdout, /4 of 4 answers stopped early/);
  const judged = await bench(...args, '--slo', 'ttft_p50<=5s,ttft_p9999<=5s');
  assert.match(judged.stdout, /objective +ttft_p50<=5000ms: [0-9.]+, met\n/);  // four samples: no interval
  assert.match(judged.stdout, /objective +ttft_p9999<=5000ms: cannot judge, 99996 more samples are needed/);
  const refused = await bench('--preset', 'single-stream', '--request-rate', '3');
  assert.equal(refused.code, 2);
}

// Conversations: latencies by turn, over a context that grows.
{
  const args = ['--turns', '3', '--num-sessions', '6', '--max-concurrency', '3', '--output-len', '4'];
  const { metrics } = await record(...args);
  assert.deepEqual(metrics.turns.map(({ turn, attempted, completed }) => [turn, attempted, completed]),
    [[0, 6, 6], [1, 6, 6], [2, 6, 6]]);
  const context = metrics.turns.map((turn) => turn.input_tokens_mean);
  assert.ok(context[0] < context[1] && context[1] < context[2], `${context}`);
  assert.equal(metrics.turns[1].ttft_ms.n, 6);
  assert.equal(metrics.turns[1].itl_ms.n, 18);
  const table = await bench(...args);
  assert.match(table.stdout, /turn +attempted +completed +prompt mean/);
}

// A preset of bounds by name, and steadiness on request.
{
  const { metrics } = await record('--max-concurrency', '2', '--num-prompts', '20', '--output-len', '4',
    '--goodput', 'mlperf:llama2-70b-server', '--steady-state', 'auto');
  assert.equal(metrics.goodput_slo, 'ttft:2000 tpot:200');
  assert.equal(metrics.goodput_fraction, 1);
  assert.ok(metrics.ci95.goodput_fraction[0] > 0.8);
}

await mock.stop();
await fs.rm(folder, { recursive: true });
console.log('statistics: every case holds');
