// `prony bench --find` from outside, against a server of known capacity: 8 places x 20 ms, which is
// 400 requests/s; and what is refused before anything is sent.
// Usage: node bench_find.test.mjs PATH/TO/prony [CASE...]
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { run, runCases, startServer } from './process.mjs';

const prony = path.resolve(process.argv[2]);
const scratch = mkdtempSync(path.join(tmpdir(), 'prony-find-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
const script = path.join(path.dirname(fileURLToPath(import.meta.url)), 'capacity_server.mjs');
const server = await startServer(process.execPath, [script, '8', '20']);
const target = ['--base-url', server.url, '--endpoint-type', 'openai-chat', '--input-len', '4', '--output-len', '4',
  '--on-invalid', 'warn'];
const bench = (args) => run(prony, ['bench', ...target, ...args], { timeoutMs: 280_000 });

async function refuses(args, text) {
  const got = await bench(args);
  assert.equal(got.code, 2, got.stderr);
  assert.ok(got.stderr.includes(text), `${got.stderr} should say ${text}`);
}

const tests = {
  async badUsage() {
    const rate = ['--find', 'max-rate'];
    await refuses(rate, '--find: found no --slo');
    await refuses(['--find', 'max-speed'], "--find: found 'max-speed', expected one of max-rate, max-concurrency");
    await refuses([...rate, '--slo', 'output_throughput>=5'], 'more load does not break it');
    await refuses([...rate, '--slo', 'ttft_p99>=5ms'], 'more load does not break it');
    await refuses([...rate, '--slo', 'ttft_max<=5ms'], 'expected a percentile or a mean');
    await refuses([...rate, '--slo', 'goodput_fraction>=0.9'], 'found no --goodput');
    const slo = ['--slo', 'ttft_p99<=500ms'];
    await refuses([...rate, ...slo, '--request-rate', '4'], '--request-rate: not with --find');
    await refuses([...rate, ...slo, '--duration', '4'], '--duration: not with --find');
    await refuses([...rate, ...slo, '--sweep', 'concurrency=1'], '--sweep: not with --find');
    await refuses([...rate, ...slo, '--num-prompts', '100'], '--num-prompts: found 100, expected 1111 or more');
    await refuses([...rate, ...slo, '--find-precision', '0'], "--find-precision: found '0'");
    await refuses(['--find', 'max-concurrency', ...slo, '--find-start', '1.5'], '--find-start: found 1.5, expected a whole number');
  },
  async whatItWillCostIsSaidFirst() {
    const got = await bench(['--find', 'max-rate', '--slo', 'ttft_p99<=500ms', '--find-start', '2', '--dry-run']);
    assert.equal(got.code, 0, got.stderr);
    assert.match(got.stdout, /ttft_p99<=500ms needs 1111 requests a probe, 9 min at 2\/s: about 74 min for 8 probes/);
  },
  async maxRate() {
    const out = path.join(scratch, 'rate');
    const got = await bench(['--find', 'max-rate', '--slo', 'ttft_p90<=60ms,error_rate<=1%', '--find-precision', '25%',
      '--out', out, '--json']);
    assert.equal(got.code, 0, got.stderr);
    const search = JSON.parse(got.stdout);
    console.log(got.stderr.split('\n').filter((line) => line.includes(': ')).slice(-30).join('\n'));
    assert.deepEqual(search, JSON.parse(readFileSync(path.join(out, 'search.json'), 'utf8')));
    const { lower, value, upper, limiting } = search.answer;
    console.log(`max rate ${value} [${lower}, ${upper}], capacity 400`);
    // The wait may be 40 ms, two services: that is a load of about 0.9 of the capacity.
    assert.ok(lower >= 200 && lower < 400, `${lower}`);
    assert.ok(upper > lower && upper <= 480, `${upper}`);
    assert.equal(limiting, 'ttft_p90<=60ms');
    assert.equal(search.schema, 'prony.search/1');
    for (const probe of search.probes) {
      const record = JSON.parse(readFileSync(path.join(out, probe.record), 'utf8'));
      assert.equal(record.metrics.completed + record.metrics.failed <= probe.requests, true);
      assert.equal(record.workload.seed, probe.seed);
      assert.ok(Math.abs(record.workload.request_rate / probe.level - 1) < 1e-5);
    }
    assert.equal(new Set(search.probes.map((probe) => probe.seed)).size, search.probes.length, 'fresh schedules');
    assert.ok(existsSync(path.join(out, 'probes', 'scout', 'record.json')));
    assert.equal(readdirSync(path.join(out, 'probes')).length, search.probes.length + 1);
    // Verdicts are monotone in the level, and only decided levels bound the answer.
    for (const level of search.levels) {
      if (level.level <= lower) assert.notEqual(level.verdict, 'fail');
      if (level.level >= upper) assert.notEqual(level.verdict, 'pass');
    }
  },
  async maxConcurrency() {
    // n users of 8 places wait n / 8 services of 20 ms: 45 ms are 18 users.
    const got = await bench(['--find', 'max-concurrency', '--slo', 'ttft_p50<=45ms', '--find-precision', '20%', '--json']);
    assert.equal(got.code, 0, got.stderr);
    const { lower, value, upper } = JSON.parse(got.stdout).answer;
    console.log(`max concurrency ${value} [${lower}, ${upper}], by theory 18`);
    assert.ok(lower >= 12 && upper <= 22 && lower < upper, `${lower} ${upper}`);
    assert.equal(value, lower);
  },
  async nothingKeepsIt() {
    const got = await bench(['--find', 'max-concurrency', '--slo', 'ttft_p50<=2ms', '--find-start', '1']);
    assert.equal(got.code, 1, got.stderr);
    assert.match(got.stdout, /max concurrency below 1: that breaks ttft_p50<=2ms/);
  },
};

await runCases(Object.keys(tests), (name) => tests[name]());
await server.stop();
process.exit();
