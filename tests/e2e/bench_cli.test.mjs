// The contract of `prony bench` on the command line: exit codes, what goes to stdout and stderr,
// files, rules, Ctrl-C once and twice, and the server it starts by itself.
// Usage: node bench_cli.test.mjs PATH/TO/prony
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { run, runCases, startServer } from './process.mjs';

process.setMaxListeners(100);
const prony = path.resolve(process.argv[2]);
const scratch = mkdtempSync(path.join(tmpdir(), 'prony-bench-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
const mock = await startServer(prony, ['mock', '--port', '0', '--ttft-ms', '10', '--itl-ms', '2']);
const slow = await startServer(prony, ['mock', '--port', '0', '--ttft-ms', '20', '--itl-ms', '50', '--tokens', '2000']);
const failing = await startServer(prony, ['mock', '--port', '0', '--fault', '503-fifth']);

const bench = (args, options) => run(prony, ['bench', ...args], options);
const target = ['--base-url', mock.url, '--endpoint-type', 'openai-chat', '--input-len', '8', '--output-len', '4',
  '--max-concurrency', '5', '--on-invalid', 'warn'];
const small = [...target, '--num-prompts', '10'];
/** Bad usage: exit 2, one line on stderr that says `text`, nothing on stdout. */
async function refuses(args, text, code = 2) {
  const got = await bench(args);
  assert.equal(got.code, code, got.stderr);
  assert.equal(got.stdout, '');
  assert.equal(got.stderr.trim().split('\n').length, 1, got.stderr);
  assert.ok(got.stderr.includes(text), `${got.stderr} should say ${text}`);
  assert.match(got.stderr, /^prony bench: \S/);
}

const tests = {
  async badUsage() {
    await refuses([...small, '--num-prompt', '3'], 'did you mean --num-prompts?');
    await refuses([...small, '--num-prompts', 'ten'], "--num-prompts: found 'ten', expected a whole number");
    await refuses([...small, '--num-prompts', '0'], '--num-prompts: found 0, expected 1 or more');
    await refuses([...small, '--request-rate', '-1'], '--request-rate');
    await refuses([...small, '--burstiness', '0', '--request-rate', '4'], '--burstiness');
    await refuses([...small, '--max-concurrency', '0'], '--max-concurrency: found 0');
    await refuses([...small, '--duration', '0'], '--duration: found 0');
    await refuses([...small, '--stall-timeout', '0'], '--stall-timeout: found 0, expected seconds');
    await refuses([...small, '--endpoint-type', 'grpc'], "--endpoint-type: found 'grpc'");
    await refuses([...small, '--extra-body', '{"n":2}'], '--extra-body: found n = 2');
    await refuses([...small, '--extra-body', '{'], '--extra-body: not JSON');
    await refuses([...small, '--slo', 'ttft_p42<=1ms'], '--slo');
    await refuses([...small, '--goodput', 'speed:1'], '--goodput');
    await refuses([...small, '--max-error-rate', '2'], '--max-error-rate: found 2, expected 0 to 1');
    await refuses([...small, '--header', 'nonsense'], "--header: found 'nonsense', expected NAME=VALUE");
    await refuses([...small, '--pin-cores', '9999'], "--pin-cores: found '9999'");
    await refuses([...small, '--prompt-format', 'ids'], '--prompt-format');
    await refuses([...small, '--input-len', 'uniform:9'], '--input-len');
    await refuses([...small, '--dataset', 'azure', '--dataset-path', '/nowhere.csv'], '/nowhere.csv', 3);
    await refuses([...small, '--base-url', 'ftp://x'], '--base-url');
  },
  async help() {
    const got = await bench(['--help']);
    assert.equal(got.code, 0);
    for (const flag of ['--base-url', '--request-rate', '--concurrency', '--random-input-len', '--goodput', '--json'])
      assert.ok(got.stdout.includes(flag), flag);
  },
  async endpointNeverAnswers() {
    const out = path.join(scratch, 'never');
    await refuses([...small, '--base-url', 'http://127.0.0.1:9', '--ready-timeout', '0.5', '--json', '--out', out],
                  'not ready within 0.5 s', 3);
    assert.ok(!existsSync(path.join(out, 'record.json')));
  },
  async table() {
    const got = await bench(small);
    assert.equal(got.code, 0, got.stderr);
    for (const text of ['10 attempted, 10 completed, 0 failed', 'TTFT from the send', 'TTFT from the intention',
      'TPOT as vLLM', 'tokens asked 40, got 40', 'its timing is not that of a real device'])
      assert.ok(got.stdout.includes(text), `${text} in\n${got.stdout}`);
  },
  async jsonIsOneDocumentAndFilesAgree() {
    const out = path.join(scratch, 'deep', 'out');
    const got = await bench([...small, '--json', '--out', out, '--save-detailed', '--save-text', '--seed', '7',
      '--label', 'night', '--metadata', 'gpu=none', '--header', 'X-Secret=hunter2', '--progress', 'on']);
    assert.equal(got.code, 0, got.stderr);
    const record = JSON.parse(got.stdout);
    assert.deepEqual(JSON.parse(readFileSync(path.join(out, 'record.json'), 'utf8')), record);
    assert.deepEqual(readdirSync(out).sort(), ['record.json', 'report.html', 'requests.jsonl']);
    for (const key of ['schema', 'source', 'system', 'workload', 'environment', 'metrics', 'validity'])
      assert.ok(record[key], key);
    assert.equal(record.run.label, 'night');
    assert.deepEqual(record.run.metadata, { gpu: 'none' });
    assert.ok(!got.stdout.includes('hunter2'), 'secrets of headers stay out of the record');
    assert.equal(record.workload.seed, 7);
    const rows = readFileSync(path.join(out, 'requests.jsonl'), 'utf8').trim().split('\n').map(JSON.parse);
    assert.equal(rows.length, 10);
    assert.ok(rows.every((row) => row.events.length === 4 && row.text.length > 0));
    assert.match(readFileSync(path.join(out, 'report.html'), 'utf8'), /^<!doctype html>/i);
    assert.ok(got.stderr.includes('sent 10/10'), 'progress when asked for');
  },
  async sameSeedSameLoad() {
    const digests = new Set();
    for (const seed of ['3', '3', '4']) {
      const got = await bench([...small, '--json', '--seed', seed, '--input-len', 'uniform:4,40']);
      digests.add(JSON.parse(got.stdout).workload.details.schedule_digest);
    }
    assert.equal(digests.size, 2);
  },
  async rules() {
    const code = async (...args) => (await bench([...small, ...args])).code;
    assert.equal(await code('--slo', 'ttft_p50<=10s,error_rate<=0.01'), 0);
    assert.equal(await code('--slo', 'ttft_p50<=1ms'), 1);
    assert.equal(await code('--fail-if', 'error_rate>0.5'), 0);
    assert.equal(await code('--fail-if', 'ttft_p50>1ms'), 1);
    const undecided = await bench([...small, '--slo', 'ttft_p99<=10s']);
    assert.equal(undecided.code, 0);
    assert.ok(undecided.stderr.includes('cannot judge --slo ttft_p99<=10000ms'), undecided.stderr);
    const some = ['--base-url', failing.url, ...small.slice(2)];
    assert.equal((await bench(some)).code, 0, 'some failed requests alone are no failure');
    assert.equal((await bench([...some, '--max-error-rate', '0.5'])).code, 0);
    const many = await bench([...some, '--max-error-rate', '0.1']);
    assert.equal(many.code, 1);
    assert.ok(many.stderr.includes('failed --max-error-rate 0.1: got 0.2'), many.stderr);
    const good = JSON.parse((await bench([...small, '--json', '--goodput', 'ttft:10000', 'e2el:10000'])).stdout);
    assert.equal(good.metrics.goodput_fraction, 1);
  },
  async warmUpsAreNotMeasured() {
    const got = await bench([...small, '--json', '--num-warmups', '3']);
    assert.equal(JSON.parse(got.stdout).metrics.attempted, 10);
  },
  async autoFindsTheDialect() {
    const got = await bench(['--base-url', `${mock.url}/v1/`, '--num-prompts', '3', '--output-len', '3', '--json',
      '--on-invalid', 'warn']);
    assert.equal(got.code, 0, got.stderr);
    const record = JSON.parse(got.stdout);
    assert.equal(record.system.endpoint_type, 'openai-chat');
    assert.equal(record.system.model, 'mock');
    assert.equal(record.workload.max_concurrency, 8, 'without a rate: a closed loop');
  },
  async traceReplay() {
    const got = await bench(['--base-url', mock.url, '--endpoint-type', 'openai-completions', '--dataset', 'azure',
      '--num-prompts', '20', '--time-scale', '0.05', '--input-scale', '0.02', '--max-output-len', '5', '--json',
      '--on-invalid', 'warn']);
    assert.equal(got.code, 0, got.stderr);
    const { workload, metrics } = JSON.parse(got.stdout);
    assert.equal(workload.arrival, 'trace');
    assert.equal(metrics.completed, 20);
    assert.ok(workload.description.includes('scaled'), workload.description);
  },
  async scheduleFile() {
    const file = path.join(scratch, 'schedule.jsonl');
    const entries = [0, 1, 2].map((index) => ({ index, t_intended_ns: index * 20e6, input_tokens: 5, output_tokens: 3,
      session: -1, turn: 0, prefix_group: -1, prefix_tokens: 0 }));
    writeFileSync(file, [{ schema: 'prony.schedule/1', seed: 1, description: 'by hand', count: 3 }, ...entries]
      .map((line) => JSON.stringify(line) + '\n').join(''));
    const got = await bench(['--base-url', mock.url, '--endpoint-type', 'openai-chat', '--dataset', 'schedule',
      '--dataset-path', file, '--json', '--on-invalid', 'warn']);
    assert.equal(got.code, 0, got.stderr);
    const { workload, metrics } = JSON.parse(got.stdout);
    assert.ok(workload.description.startsWith('by hand'));
    assert.equal(metrics.completed, 3);
  },
  async interruptOnceAndTwice() {
    for (const signals of [1, 2]) {
      const out = path.join(scratch, `interrupt${signals}`);
      const child = spawn(prony, ['bench', '--base-url', slow.url, '--endpoint-type', 'openai-chat', '--model', 'mock',
        '--num-prompts', '50', '--max-concurrency', '4', '--output-len', '2000', '--json', '--out', out],
        { stdio: ['ignore', 'pipe', 'pipe'] });
      let stdout = '';
      child.stdout.on('data', (piece) => { stdout += piece; });
      const ended = new Promise((resolve) => child.once('close', resolve));
      await sleep(1500);
      const begin = Date.now();
      child.kill('SIGINT');
      if (signals === 2) child.kill('SIGINT');
      const code = await ended;
      assert.ok(Date.now() - begin < 5000, 'ends at once');
      assert.equal(code, 1);
      if (signals === 2) continue;
      const record = JSON.parse(stdout);
      assert.equal(record.run.interrupted, true);
      assert.deepEqual(record.metrics.errors, { interrupted: 4 });
      assert.ok(record.metrics.output_throughput_run > 0, 'tokens that came count');
      assert.ok(existsSync(path.join(out, 'report.html')));
    }
  },
  async ownServer() {
    const got = await bench(['--model', 'dummy:test', '--num-prompts', '4', '--max-concurrency', '2', '--input-len', '32',
      '--output-len', '4', '--ignore-eos', '--json', '--on-invalid', 'warn']);
    assert.equal(got.code, 0, got.stderr);
    const { system, metrics } = JSON.parse(got.stdout);
    assert.equal(system.kind, 'endpoint');
    assert.equal(system.model, 'dummy:test');
    assert.equal(metrics.completed, 4);
    assert.equal(metrics.input_tokens.equal, 4, 'prompts have exactly the asked length');
    assert.equal(metrics.output_tokens.equal, 4);
    await refuses(['--model', 'dummy:nonsense'], 'prony ended', 3);
  },
};

await runCases(Object.keys(tests), (name) => tests[name]());
await Promise.all([mock.stop(), slow.stop(), failing.stop()]);
