// `prony compare` from outside: runs against mocks of known timing, rules and exit codes, repeats,
// documents against their schema.
// Usage: node compare.test.mjs PATH/TO/prony [CASE...]
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { run, runCases, startServer } from './process.mjs';
import { schemaFaults } from './schema.mjs';

const prony = path.resolve(process.argv[2]);
const scratch = mkdtempSync(path.join(tmpdir(), 'prony-compare-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
const folder = (name) => path.join(scratch, name);
const compare = (...args) => run(prony, ['compare', ...args]);
const json = (file) => JSON.parse(readFileSync(file, 'utf8'));

async function measure(name, ttft, seed, ...more) {
  const mock = await startServer(prony, ['mock', '--port', '0', '--ttft-ms', String(ttft), '--itl-ms', '2']);
  const got = await run(prony, ['bench', '--base-url', mock.url, '--endpoint-type', 'openai-chat', '--input-len', '8',
    '--output-len', '4', '--num-prompts', '150', '--request-rate', '150', '--seed', String(seed), '--on-invalid', 'warn', '--out', folder(name),
    '--save-detailed', ...more]);
  assert.equal(got.code, 0, got.stderr);
  await mock.stop();
}
await measure('old', 20, 1);
await measure('new', 26, 1, '--label', 'release 2');
await measure('other', 20, 2);
await measure('half', 20, 1, '--request-rate', '75');
// A busy machine may make a run invalid; what is judged here are known timings all the same.
const anyway = '--allow-incomparable';

async function judged(args, code) {
  const got = await compare(...args, '--json');
  assert.equal(got.code, code, got.stderr);
  const document = JSON.parse(got.stdout);
  assert.deepEqual(schemaFaults(document, 'prony.compare.1'), []);
  return document;
}
const metric = (one, key) => one.metrics.find((m) => m.key === key);

const tests = {
  async aSlowerServerIsFound() {
    const document = await judged([folder('old'), folder('new'), anyway, '--out', folder('diff')], 0);
    assert.deepEqual(document, json(path.join(folder('diff'), 'compare.json')));
    assert.match(readFileSync(path.join(folder('diff'), 'compare.html'), 'utf8'), /release 2.*against old/s);
    assert.deepEqual(document.sides.map((side) => side.name), ['old', 'release 2']);
    const [one] = document.comparisons;
    assert.equal(one.method, 'paired');
    const change = metric(one, 'ttft_p50');
    assert.equal(change.verdict, 'regressed');
    assert.ok(Math.abs(change.relative.value - 0.3) < 0.05, JSON.stringify(change));
    assert.equal(one.distributions.find((d) => d.key === 'ttft').verdict, 'regressed');
    assert.ok(Math.abs(one.distributions[0].shift_ms.value - 6) < 1);
    assert.ok(one.differences.some((d) => d.field === 'endpoint'));
    assert.ok(one.notes.some((note) => note.startsWith('one run a side')));
  },
  async rulesDecideTheExitCode() {
    const sides = [folder('old'), folder('new'), anyway];
    const broken = await judged([...sides, '--fail-if', 'ttft_p50>+5%,error_rate>+50pp'], 1);
    assert.deepEqual(broken.comparisons[0].rules.map((rule) => rule.state), ['broken', 'kept']);
    await judged([...sides, '--fail-if', 'ttft_p50>+80%'], 0);
    const open = await judged([...sides, '--fail-if', 'ttft_p999>+1%'], 0);
    assert.equal(open.comparisons[0].rules[0].state, 'undecided');
  },
  async anotherWorkloadIsRefused() {
    const got = await compare(folder('old'), folder('half'));
    assert.equal(got.code, 1);
    assert.match(got.stdout, /INCOMPARABLE workload differs in request_rate: 150.* and 75/);
    assert.match(got.stderr, /not comparable/);
  },
  async anotherSeedIsUnpaired() {
    const document = await judged([folder('old'), folder('other'), anyway], 0);
    assert.equal(document.comparisons[0].method, 'unpaired');
  },
  async repeatsAndRowsAlone() {
    for (const [side, names] of [['olds', ['old', 'other']], ['news', ['new', 'half']]]) {
      for (const name of names) cpSync(folder(name), path.join(folder(side), name), { recursive: true });
    }
    const runs = await judged([folder('olds'), folder('news'), anyway], 0);
    assert.deepEqual(runs.sides.map((side) => side.runs.length), [2, 2]);
    assert.equal(runs.comparisons[0].method, 'runs');
    const rows = await judged([path.join(folder('old'), 'requests.jsonl'), path.join(folder('new'), 'requests.jsonl')], 0);
    assert.equal(rows.sides[0].runs[0].source, null);
    assert.equal(rows.comparisons[0].method, 'paired');
    assert.equal(metric(rows.comparisons[0], 'ttft_p50').verdict, 'regressed');
    const figures = path.join(scratch, 'figures.json');
    writeFileSync(figures, readFileSync(path.join(folder('new'), 'record.json')));
    const alone = await judged([folder('old'), figures, anyway], 0);
    assert.equal(alone.comparisons[0].method, 'figures');
    assert.ok(alone.comparisons[0].metrics.every((m) => m.verdict === 'cannot tell'));
  },
  async predictionsTooAndThreeSides() {
    const predicted = path.join(scratch, 'predicted.json');
    const got = await run(prony, ['predict', '--model', 'llama-3.1-8b', '--hardware', 'h100-sxm', '--engine', 'vllm', '--input-len',
      '1024', '--output-len', '256', '--concurrency', '8', '--json']);
    assert.equal(got.code, 0, got.stderr);
    writeFileSync(predicted, got.stdout);
    const document = await judged([predicted, folder('old'), folder('new'), anyway], 0);
    assert.equal(document.comparisons.length, 2);
    assert.equal(document.sides[0].runs[0].source, 'predicted');
  },
  async badUsage() {
    const refuses = async (args, text) => {
      const got = await compare(...args);
      assert.equal(got.code, 2, got.stdout);
      assert.equal(got.stdout, '');
      assert.equal(got.stderr.trim().split('\n').length, 1);
      assert.ok(got.stderr.includes(text), got.stderr);
    };
    const sides = [folder('old'), folder('new')];
    await refuses([folder('old')], 'found 1 side, expected two or more');
    await refuses([folder('old'), folder('nowhere')], 'found no such file or folder');
    await refuses([...sides, '--fail-if', 'ttft_p99>5%'], "found '5%', expected a sign");
    await refuses([...sides, '--confidence', '1'], '--confidence: found 1, expected 0.5 to 0.999');
    await refuses([...sides, '--redraws', '3'], '--redraws: found 3');
    const broken = path.join(scratch, 'broken.json');
    writeFileSync(broken, '{"schema": 1}');
    await refuses([folder('old'), broken], 'broken.json: /');
  },
};

await runCases(Object.keys(tests), (name) => tests[name]());
process.exit();
