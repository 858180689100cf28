// Workloads of `prony bench` as whole programs: the report of a schedule, its file, traces, and
// conversations against the mock, whose received prompts are not needed: rows tell.
// Usage: node bench_workloads.test.mjs PATH/TO/prony
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { run, runCases, startServer } from './process.mjs';
import { schemaFaults } from './schema.mjs';

const prony = path.resolve(process.argv[2]);
const scratch = mkdtempSync(path.join(tmpdir(), 'prony-workloads-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
const mock = await startServer(prony, ['mock', '--port', '0', '--ttft-ms', '10', '--itl-ms', '2']);
const bench = (args) => run(prony, ['bench', ...args]);

/** The report of a schedule: exit 0, one JSON document, nothing sent. */
async function dryRun(...args) {
  const got = await bench(['--dry-run', '--json', ...args]);
  assert.equal(got.code, 0, got.stderr);
  const report = JSON.parse(got.stdout);
  assert.deepEqual(schemaFaults(report, 'prony.schedule-report.1'), []);
  return report;
}
async function refuses(args, text) {
  const got = await bench(['--dry-run', ...args]);
  assert.equal(got.code, 2, got.stderr);
  assert.equal(got.stdout, '');
  assert.ok(got.stderr.includes(text), `${got.stderr} should say ${text}`);
}

const tests = {
  async densityOfATrace() {  // experiment E10
    const wide = await dryRun('--dataset', 'azure', '--lengths', 'kde', '--kde-bandwidth', '512',
      '--request-rate', '120', '--duration', '300');
    assert.ok(Math.abs(wide.drawn_rate_per_s - 120) < 4 * Math.sqrt(120 / 300), 'rate');
    assert.ok(wide.gaps.ks.p_value > 1e-3, 'gaps are exponential');
    assert.ok(wide.trace.output_ks.p_value < 1e-6, 'a bandwidth of 512 is not the law of the answers');
    assert.ok(wide.input_tokens.min >= 1);
    const pairs = await dryRun('--dataset', 'azure', '--lengths', 'kde-pairs', '--kde-log',
      '--request-rate', '10', '--num-prompts', '4000');
    assert.ok(Math.abs(pairs.input_tokens.mean / pairs.trace.input_tokens.mean - 1) < 0.1, 'mean');
    assert.ok(pairs.trace.spearman_difference_p > 1e-3, 'rank correlation');
    const again = await dryRun('--dataset', 'azure', '--lengths', 'kde-pairs', '--kde-log',
      '--request-rate', '10', '--num-prompts', '4000');
    assert.deepEqual(again, pairs);
  },
  async aLineForEachStage() {
    const out = path.join(scratch, 'stages');
    const got = await bench(['--base-url', mock.url, '--endpoint-type', 'openai-chat', '--stages', '20@2s,80@2s', '--burstiness', '100',
      '--input-len', '8', '--output-len', '4', '--on-invalid', 'warn', '--out', out]);
    assert.equal(got.code, 0, got.stderr);
    const { stages } = JSON.parse(readFileSync(path.join(out, 'record.json'), 'utf8')).metrics;
    assert.equal(stages.length, 2);
    const rows = readFileSync(path.join(out, 'requests.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
    const start = Math.min(...rows.map((row) => row.t_intended_ns));
    for (const [i, stage] of stages.entries()) {
      const its = rows.filter((row) => row.stage === i);
      assert.equal(stage.attempted, its.length);
      assert.ok(Math.abs(its.length - [40, 160][i]) < 8, `${its.length} requests of stage ${i}`);
      assert.ok(its.every((row) => (row.t_intended_ns - start) / 1e9 > 2 * i - 0.1 && (row.t_intended_ns - start) / 1e9 < 2 * i + 2.1));
      assert.ok(stage.begin_s >= 2 * i - 0.1 && stage.end_s <= 2 * i + 2);
    }
    assert.match(got.stdout, /^stage +attempted/m);
    assert.match(readFileSync(path.join(out, 'report.html'), 'utf8'), /<h2>Stages of the load<\/h2>/);
  },
  async everyRateOfItsKind() {
    for (const args of [['--stages', '20@20s,10-60@20s'], ['--request-rate', '40', '--on-off', '2s,3s', '--duration', '60'],
      ['--request-rate', '20', '--diurnal', '60s,0.9', '--duration', '120'],
      ['--ramp-up-strategy', 'exponential', '--ramp-up-start-rps', '2', '--ramp-up-end-rps', '80', '--num-prompts', '1000'],
      ['--ramp-up-strategy', 'linear', '--ramp-up-start-rps', '2', '--ramp-up-end-rps', '80', '--duration', '30']]) {
      for (const burstiness of ['1', '0.3']) {
        const report = await dryRun(...args, '--burstiness', burstiness);
        assert.ok(report.gaps.law.endsWith('after rescaling time by the rate'), args.join(' '));
        assert.ok(report.gaps.ks.p_value > 1e-4, `${args.join(' ')}: p ${report.gaps.ks.p_value}`);
      }
    }
    await refuses(['--stages', '4@60s', '--request-rate', '4'], '--stages: not with --request-rate');
    await refuses(['--stages', '4@x'], "--stages: found '4@x'");
    await refuses(['--on-off', '1s,1s'], '--on-off: expected --request-rate');
    await refuses(['--ramp-up-strategy', 'linear'], '--ramp-up-start-rps');
    await refuses(['--ramp-up-start-rps', '1'], 'expected --ramp-up-strategy');
    await refuses(['--lengths', 'kde'], '--lengths kde: expected a dataset that is a trace');
    await refuses(['--think-time', '1'], '--think-time: expected --turns');
    await refuses(['--turns', '0'], '--turns');
    await refuses(['--dataset', 'azure', '--lengths', 'kde', '--kde-bandwidth', '-1'], "--kde-bandwidth: found '-1'");
  },
  async tracesThatShip() {
    const moon = await dryRun('--dataset', 'mooncake');
    assert.equal(moon.requests, 1000);
    assert.ok(moon.prefix.shared_fraction > 0.1 && moon.prefix.blocks > 1000);
    const cloud = await dryRun('--dataset', 'servegen', '--trace-start', '43200', '--trace-length', '300');
    assert.ok(cloud.requests > 100);
    assert.ok(cloud.gaps.cv > 1.1, 'burstier than Poisson');
  },
  async ownFilesAndSchedules() {
    const table = path.join(scratch, 'own.csv');
    writeFileSync(table, 'when,asked,got\n0,10,3\n250,20,4\n500,30,5\n');
    const schedule = path.join(scratch, 'schedule.jsonl');
    const report = await dryRun('--dataset', 'csv', '--dataset-path', table, '--column',
      'input=asked,output=got,time=when:ms', '--save-schedule', schedule);
    assert.equal(report.duration_s, 0.5);
    const lines = readFileSync(schedule, 'utf8').trim().split('\n').map(JSON.parse);
    assert.deepEqual(lines.slice(1).map((e) => [e.t_intended_ns, e.input_tokens, e.output_tokens]),
      [[0, 10, 3], [250e6, 20, 4], [500e6, 30, 5]]);
    const replayed = await dryRun('--dataset', 'schedule', '--dataset-path', schedule);
    assert.equal(replayed.digest, report.digest);
    const chats = path.join(scratch, 'chats.json');
    writeFileSync(chats, JSON.stringify([{ id: 'a', conversations: [{ from: 'human', value: 'x'.repeat(40) },
      { from: 'gpt', value: 'y'.repeat(20) }, { from: 'human', value: 'z' }, { from: 'gpt', value: 'w' }] }]));
    const talk = await dryRun('--dataset', 'sharegpt', '--dataset-path', chats, '--tokenizer', 'byte', '--num-sessions', '3');
    assert.deepEqual([talk.requests, talk.sessions, talk.input_tokens.max], [6, 3, 61]);
    await refuses(['--dataset', 'csv', '--dataset-path', table, '--column', 'input=no'], 'expected one called no');
    await refuses(['--dataset', 'jsonl'], '--dataset-path: missing');
  },
  async conversations() {  // experiment E46
    const out = path.join(scratch, 'talk');
    const got = await bench(['--base-url', mock.url, '--endpoint-type', 'openai-chat', '--max-concurrency', '4', '--turns', '3',
      '--num-sessions', '8', '--think-time', '0.02', '--input-len', '20', '--output-len', '5', '--json', '--out', out,
      '--on-invalid', 'warn']);
    assert.equal(got.code, 0, got.stderr);
    const record = JSON.parse(got.stdout);
    assert.equal(record.metrics.completed, 24);
    const rows = readFileSync(path.join(out, 'requests.jsonl'), 'utf8').trim().split('\n').map(JSON.parse);
    const byTurn = [0, 1, 2].map((turn) => rows.filter((row) => row.turn === turn));
    for (const turn of byTurn) assert.equal(turn.length, 8);
    // The prompt grows by the answer received and the new message; the mock counts words or bytes.
    const mean = (list) => list.reduce((sum, row) => sum + row.prompt_tokens, 0) / list.length;
    assert.ok(mean(byTurn[0]) < mean(byTurn[1]) && mean(byTurn[1]) < mean(byTurn[2]), 'context grows');
    for (const row of byTurn[1]) {
      const before = rows.find((other) => other.session === row.session && other.turn === 0);
      assert.equal(row.t_intended_ns, before.t_close_ns + 20e6);
      assert.ok(row.t_send_ns >= row.t_intended_ns);
    }
  },
};

await runCases(Object.keys(tests), (name) => tests[name]());
await mock.stop();
