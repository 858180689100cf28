// `prony bench --sweep` from outside: grids over servers that it starts itself, resuming after
// SIGKILL, servers that are gone or die, what is refused, Ctrl-C.
// Usage: node bench_sweep.test.mjs PATH/TO/prony [CASE...]
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { run, runCases, startServer } from './process.mjs';

process.setMaxListeners(100);
const prony = path.resolve(process.argv[2]);
const scratch = mkdtempSync(path.join(tmpdir(), 'prony-sweep-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
const mock = await startServer(prony, ['mock', '--port', '0', '--ttft-ms', '10', '--itl-ms', '2']);

const bench = (args, options) => run(prony, ['bench', ...args], options);
const load = ['--endpoint-type', 'openai-chat', '--input-len', '8', '--output-len', '4', '--num-prompts', '20',
  '--on-invalid', 'warn'];
const target = ['--base-url', mock.url, ...load];
const json = (file) => JSON.parse(readFileSync(file, 'utf8'));
const folder = (name) => path.join(scratch, name);
const mockCommand = (ttft, extra = '') => `cmd:${extra}${prony} mock --port {port} --ttft-ms ${ttft} --itl-ms 2`;

async function refuses(args, text, code = 2) {
  const got = await bench(args);
  assert.equal(got.code, code, got.stderr);
  assert.equal(got.stdout, '');
  assert.ok(got.stderr.trim().split('\n').at(-1).includes(text), `${got.stderr} should say ${text}`);
}

const tests = {
  async badUsage() {
    await refuses([...target, '--sweep', 'concurrency'], 'expected AXIS=VALUES');
    await refuses([...target, '--sweep', 'concurrency=1,x'], "found 'x', expected a number");
    await refuses([...target, '--sweep', 'colour=1'], 'found no flag --colour that takes a number');
    await refuses([...target, '--sweep', 'concurrency=1', '--sweep', 'max-concurrency=2'],
      'another axis sets --max-concurrency already');
    await refuses([...target, '--sweep', 'concurrency=1,0'], '--max-concurrency: found 0, expected 1 or more (cell concurrency=0)');
    await refuses([...target, '--sweep', 'concurrency=1:4:x1.5'], "--max-concurrency: found '1.5', expected a whole number");
    await refuses([...target, '--sweep', 'num-runs=1,2'], 'found no flag --num-runs that takes a number');
    await refuses([...target, '--sweep', 'concurrency=1', '--resume'], '--resume: found no --out');
    await refuses([...target, '--sweep', 'concurrency=1', '--num-runs', '0'], '--num-runs: found 0');
    await refuses([...target, '--sweep', 'target=a=nowhere'], 'expected NAME=http://');
  },
  async dryRunNeedsNoServer() {
    const got = await bench(['--base-url', 'http://127.0.0.1:9', ...load, '--sweep', 'request-rate=10,20', '--sweep',
      'input-len=8,16', '--sweep-pause', '1', '--dry-run']);
    assert.equal(got.code, 0, got.stderr);
    assert.match(got.stdout, /4 cells, 4 to run: 10 s of load and pauses/);  // 2 s + 1 s each, and their pauses
    const closed = await bench(['--base-url', 'http://127.0.0.1:9', ...load, '--sweep', 'concurrency=1:8:x2', '--dry-run']);
    assert.match(closed.stdout, /4 cells, 4 to run: at least 0 s of load/);
    assert.match(closed.stdout, /4 of them are closed loops by count/);
  },
  async inTheWordsOfOtherTools() {
    const out = folder('words');
    const got = await bench([...target, '--sweep', 'concurrency=1,2', '--out', out, '--compat', 'vllm', '--save-result']);
    assert.equal(got.code, 0, got.stderr);
    for (const concurrency of [1, 2]) {
      const slug = `concurrency=${concurrency}`;
      const record = json(path.join(out, 'cells', slug, 'record.json'));
      assert.ok(record.compat.vllm, 'the record has them');
      const result = json(path.join(out, `${slug}.vllm.json`));
      assert.equal(result.max_concurrency, concurrency);
      assert.equal(result.completed, 20);
    }
    await refuses([...target, '--find', 'max-rate', '--slo', 'ttft_p90<=500ms', '--save-result'], '--save-result: not with --find');
    await refuses([...target, '--find', 'max-rate', '--slo', 'ttft_p90<=500ms', '--compat', 'all'], '--compat: not with --find');
  },
  async gridOverTwoServersThatItStarts() {
    const out = folder('grid');
    const got = await bench([...load, '--sweep', 'concurrency=1,2', 'output-len=2,4', '--sweep',
      `target=fast=${mockCommand(10)},slow=${mockCommand(40)}`, '--out', out, '--json', '--label', 'night']);
    assert.equal(got.code, 0, got.stderr);
    const sweep = JSON.parse(got.stdout);
    assert.deepEqual(sweep, json(path.join(out, 'sweep.json')));
    assert.equal(sweep.schema, 'prony.sweep/1');
    assert.equal(sweep.status, 'complete');
    assert.deepEqual(sweep.axes.map((axis) => axis.name), ['target', 'concurrency', 'output-len']);
    assert.equal(sweep.cells.length, 8);
    for (const cell of sweep.cells) {
      assert.equal(cell.status, 'done', JSON.stringify(cell));
      const record = json(path.join(out, cell.record));
      assert.deepEqual(cell.metrics.ttft_ms, record.metrics.ttft_ms);
      assert.equal(record.workload.max_concurrency, cell.coordinates.concurrency);
      assert.equal(record.workload.details.output_len, String(cell.coordinates['output-len']));
      assert.equal(record.workload.seed, cell.seed);
      assert.equal(record.metrics.completed, 20);
      const asked = { fast: 10, slow: 40 }[cell.coordinates.target];
      assert.ok(Math.abs(cell.metrics.ttft_ms.p50 - asked) < 5, `${cell.slug}: ${cell.metrics.ttft_ms.p50}`);
      assert.ok(existsSync(path.join(out, 'cells', cell.slug, 'requests.jsonl')));
      assert.ok(!record.run.command.some((word) => word.startsWith('--sweep') || word === '--out'), 'the command of one run');
    }
    // Targets slowest; both get the same load.
    assert.deepEqual(sweep.cells.map((cell) => cell.coordinates.target), [...Array(4).fill('fast'), ...Array(4).fill('slow')]);
    assert.deepEqual(sweep.cells.slice(0, 4).map((cell) => cell.seed), sweep.cells.slice(4).map((cell) => cell.seed));
    assert.equal(new Set(sweep.cells.map((cell) => cell.seed)).size, 4);
    assert.deepEqual(readdirSync(path.join(out, 'targets')).sort(), ['fast.log', 'slow.log']);
    const listening = readFileSync(path.join(out, 'targets', 'fast.log'), 'utf8');
    const url = /listening on (\S+)/.exec(listening)[1];
    await assert.rejects(fetch(`${url}/v1/models`), 'its server is stopped');
    await refuses([...load, '--sweep', 'concurrency=1', '--out', out, '--base-url', mock.url], '--resume to go on with it');
  },
  async repeatsAndTable() {
    const got = await bench([...target, '--sweep', 'concurrency=1,2,4', '--num-runs', '2']);
    assert.equal(got.code, 0, got.stderr);
    const lines = got.stdout.trim().split('\n');
    // Head, 6 cells, and a knee unless a busy machine made cells invalid, which have no value.
    assert.equal(lines.length, got.stdout.includes('INVALID') ? lines.length : 8, got.stdout);
    assert.match(lines[0], /^concurrency +run +status +req\/s/);
    assert.equal(lines.filter((line) => / done /.test(line)).length, 6);
    if (lines.length === 8) assert.match(lines[7], /^knee at concurrency=4: .*the last value/);
  },
  async resumeAfterSigkillRunsOnlyWhatIsMissing() {
    const out = folder('resume');
    const args = [...target, '--sweep', 'num-prompts=100:107:1', '--concurrency', '2', '--out', out];
    const child = spawn(prony, ['bench', ...args], { stdio: 'ignore' });
    const gone = new Promise((resolve) => child.once('exit', resolve));
    const records = () => (existsSync(path.join(out, 'cells')) ? readdirSync(path.join(out, 'cells')) : [])
      .map((name) => path.join(out, 'cells', name, 'record.json')).filter((file) => existsSync(file));
    for (let i = 0; i < 600 && records().length < 3; ++i) await sleep(20);
    child.kill('SIGKILL');
    await gone;
    const before = new Map(records().map((file) => [file, statSync(file).mtimeMs]));
    assert.ok(before.size >= 3 && before.size < 8, `${before.size} cells before the kill`);
    const got = await bench([...args, '--resume', '--json']);
    assert.equal(got.code, 0, got.stderr);
    const sweep = JSON.parse(got.stdout);
    assert.equal(sweep.cells.filter((cell) => cell.resumed).length, before.size);
    assert.equal(sweep.cells.filter((cell) => cell.status === 'done').length, 8);
    for (const [file, time] of before) assert.equal(statSync(file).mtimeMs, time, 'not run again');
    // Another option: nothing of it counts any more.
    const other = await bench([...args, '--resume', '--dry-run', '--output-len', '5']);
    assert.match(other.stdout, /8 cells, 8 to run/);
    const same = await bench([...args, '--resume', '--dry-run']);
    assert.match(same.stdout, /8 cells, 0 to run/);
    // A grid that grows keeps what it has; a broken record is run again.
    const grown = await bench([...args.map((arg) => arg.replace('100:107:1', '100:108:1')), '--resume', '--dry-run']);
    assert.match(grown.stdout, /9 cells, 1 to run/);
  },
  async aServerThatIsGoneIsACellWithAStatus() {
    const out = folder('gone');
    const got = await bench([...load, '--ready-timeout', '0.3', '--sweep', 'concurrency=1,2', '--sweep',
      `target=dead=http://127.0.0.1:9,live=${mock.url}`, '--out', out, '--json']);
    assert.equal(got.code, 1, got.stderr);
    const sweep = JSON.parse(got.stdout);
    assert.equal(sweep.status, 'partial');
    assert.deepEqual(sweep.cells.map((cell) => cell.status), ['unreachable', 'unreachable', 'done', 'done']);
    assert.match(sweep.cells[0].error, /not ready within/);
    await refuses([...load, '--ready-timeout', '0.3', '--sweep', 'concurrency=1,2', '--base-url', 'http://127.0.0.1:9'],
      'not ready within', 3);
    await refuses([...load, '--sweep', 'concurrency=1', '--sweep', 'target=x=cmd:echo cannot open the model; exit 3'],
      'cannot open the model', 3);
  },
  async aServerThatDiesIsStartedAgain() {
    const out = folder('dies');
    // It lives for 1.5 s; a cell takes about 0.6 s.
    const got = await bench([...load, '--num-prompts', '60', '--sweep', 'concurrency=2', '--num-runs', '5', '--sweep',
      `target=mortal=${mockCommand(18, 'exec timeout 1.5 ')}`, '--out', out, '--json']);
    const sweep = JSON.parse(got.stdout);
    assert.ok(sweep.cells.every((cell) => cell.status === 'done'), got.stderr);
    assert.ok(existsSync(path.join(out, 'targets', 'mortal.2.log')), got.stderr);
    assert.match(got.stderr, /the server 'mortal' ended/);
  },
  async optionsThatDoNotFitAreACellWithAStatus() {
    const got = await bench([...target, '--prompt-format', 'ids', '--sweep', 'concurrency=1,2', '--json']);
    assert.equal(got.code, 1, got.stderr);
    const sweep = JSON.parse(got.stdout);
    assert.deepEqual(sweep.cells.map((cell) => cell.status), ['error', 'error']);
    assert.match(sweep.cells[0].error, /--prompt-format/);
  },
  async rulesHoldForEveryCell() {
    const code = async (...rule) => (await bench([...target, '--sweep', 'concurrency=1,2', ...rule])).code;
    assert.equal(await code('--slo', 'ttft_p50<=10s'), 0);
    assert.equal(await code('--slo', 'ttft_p50<=1ms'), 1);
  },
  async ctrlCLeavesWhatThereIs() {
    const out = folder('interrupt');
    const child = spawn(prony, ['bench', ...target, '--num-prompts', '100', '--sweep', 'concurrency=2', '--num-runs', '50',
      '--out', out, '--json'], { stdio: ['ignore', 'pipe', 'ignore'] });
    let stdout = '';
    child.stdout.on('data', (piece) => { stdout += piece; });
    const ended = new Promise((resolve) => child.once('close', resolve));
    await sleep(2500);
    child.kill('SIGINT');
    assert.equal(await ended, 1);
    const sweep = JSON.parse(stdout);
    assert.equal(sweep.status, 'partial');
    const count = (status) => sweep.cells.filter((cell) => cell.status === status).length;
    assert.ok(count('done') >= 1 && count('pending') >= 1 && count('interrupted') <= 1, stdout.slice(0, 2000));
    assert.deepEqual(json(path.join(out, 'sweep.json')), sweep);
  },
};

await runCases(Object.keys(tests), (name) => tests[name]());
await mock.stop();
process.exit();
