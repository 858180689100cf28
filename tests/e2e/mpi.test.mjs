// One run by several processes: mpirun -n 2 and 3 against the mock, the same requests as one process
// sends, clocks and starts within bounds, errors told once. Skipped without mpirun or the plugin.
// Usage: node mpi.test.mjs PATH/TO/prony
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { run, startServer } from './process.mjs';

const prony = path.resolve(process.argv[2]);
const skip = (why) => { console.log(`skipped: ${why}`); process.exit(77); };
if (!existsSync(path.join(path.dirname(prony), 'libprony_mpi.so'))) skip('built without MPI');
if ((await run('sh', ['-c', 'command -v mpirun'], {})).code !== 0) skip('no mpirun');

const env = { ...process.env, OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' };
const together = (n, args, more = {}) =>
  run('mpirun', ['--oversubscribe', '-n', String(n), prony, 'bench', ...args], { env: { ...env, ...more } });

const mock = await startServer(prony, ['mock', '--port', '0', '--ttft-ms', '20', '--itl-ms', '2']);
const out = mkdtempSync(path.join(tmpdir(), 'prony-mpi-'));
process.once('exit', () => rmSync(out, { recursive: true, force: true }));
const load = ['--base-url', mock.url, '--endpoint-type', 'openai-chat', '--num-prompts', '60', '--request-rate', '60',
  '--output-len', 'uniform:4,12', '--seed', '5', '--num-warmups', '5', '--on-invalid', 'warn', '--json'];
const rowsOf = (name) => readFileSync(path.join(out, name, 'requests.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
const shape = (rows) => rows.map((row) => [row.index, row.input_tokens_asked, row.output_tokens_asked, row.status]);

const alone = await run(prony, ['bench', ...load, '--out', path.join(out, '1')]);
assert.equal(alone.code, 0, alone.stderr);
const digest = JSON.parse(alone.stdout).workload.details.schedule_digest;
for (const n of [2, 3]) {
  const done = await together(n, [...load, '--out', path.join(out, String(n))]);
  assert.equal(done.code, 0, done.stderr);
  const record = JSON.parse(done.stdout); // one document: only the first prints
  assert.equal(record.workload.details.schedule_digest, digest);
  assert.equal(record.metrics.completed, record.metrics.attempted);
  const rows = rowsOf(String(n));
  assert.deepEqual(shape(rows), shape(rowsOf('1')), 'the union is not the schedule');
  assert.equal(new Set(rows.map((row) => row.id)).size, 60);
  const { ranks } = record.client;
  assert.equal(ranks.length, n);
  assert.equal(ranks.reduce((sum, rank) => sum + rank.requests, 0), 60);
  for (const rank of ranks) {
    assert.equal(rank.requests, 60 / n);
    // One host has one clock.
    assert.ok(Math.abs(rank.clock_offset_ms) <= rank.clock_error_ms + 0.001, JSON.stringify(rank));
    assert.ok(rank.start_late_ms < 20, JSON.stringify(rank));
  }
  assert.equal(record.client.loop_busy.length, n);
  // On one axis: instants of neighbours in the schedule come from different processes.
  const t0 = rows[0].t_intended_ns;
  const reference = rowsOf('1');
  for (let i = 0; i < rows.length; i += 1) {
    const difference = (rows[i].t_intended_ns - t0) - (reference[i].t_intended_ns - reference[0].t_intended_ns);
    assert.ok(Math.abs(difference) < 20e6, `request ${i} is meant ${difference / 1e6} ms off`);
  }
  // The server saw exactly what all of them sent.
  const { server } = record.telemetry;
  assert.equal(server.differences.requests, 60);
  assert.ok(server.checks.every((one) => one.agree), JSON.stringify(server.checks));
}
{
  const closed = await together(2, [...load.slice(0, 6), '--max-concurrency', '5', '--on-invalid', 'warn', '--json']);
  assert.equal(closed.code, 0, closed.stderr);
  const { metrics } = JSON.parse(closed.stdout);
  assert.equal(metrics.completed, 60);
  assert.ok(metrics.concurrency_max <= 5, `found ${metrics.concurrency_max} in flight`);
}
// Errors: told once, within a bound, with the code.
const once = (done, pattern) => {
  assert.notEqual(done.code, 0);
  assert.equal((done.stderr.match(pattern) ?? []).length, 1, done.stderr);
};
once(await together(2, [...load, '--max-concurrency', '1']), /prony bench: .*--max-concurrency: found 1, expected at least one/g);
once(await together(2, ['--num-prompts', '5']), /prony bench: .*--base-url: missing/g);
once(await together(2, ['--base-url', 'http://127.0.0.1:1', '--ready-timeout', '0.5', '--model', 'm']), /prony bench: .*not ready within/g);
const missing = await together(2, load, { PRONY_MPI_PLUGIN: '/no/such/plugin.so' });
assert.notEqual(missing.code, 0);
assert.match(missing.stderr, /OMPI_COMM_WORLD_SIZE is set, so an MPI launcher started this process/);
assert.equal(await mock.stop(), 0);
console.log('mpi: shares, clocks, start, rows, errors');
