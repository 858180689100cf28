// Servers and networks that die under a run: the bench ends in bounded time, crashes never, and counts
// nothing as a success that was none.
// Usage: node bench_robust.test.mjs PATH/TO/prony
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { benchStamped, buildServer, scratch } from './stamped.mjs';
import { run, startServer } from './process.mjs';
import { readFileSync } from 'node:fs';

process.setMaxListeners(100);
const prony = path.resolve(process.argv[2]);
const binary = buildServer();
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const TOKENS = 100;  // of 10 ms each
const LOAD = ['--request-rate', '100', '--num-prompts', '200', '--output-len', String(TOKENS), '--connect-timeout', '1',
              '--first-token-timeout', '1', '--stall-timeout', '1'];

/** Whatever happened: a success has all its tokens, a failure has a reason, every request is there. */
function checkRows(rows, count) {
  assert.equal(rows.length, count);
  for (const row of rows) {
    if (row.status === 'ok') assert.equal(row.events.length, TOKENS, `request ${row.index}`);
    else assert.notEqual(row.error, '', `request ${row.index}`);
  }
  const groups = {};
  for (const row of rows) (groups[row.status] ??= []).push(row);
  return groups;
}
function checkRecord(record, rows) {
  const ok = rows.filter((row) => row.status === 'ok').length;
  assert.equal(record.metrics.completed, ok);
  assert.equal(record.metrics.failed, rows.length - ok);
  assert.equal(record.metrics.ttft_ms?.n ?? 0, ok, 'failures have no latency');
}

{
  const { code, rows, record } = await benchStamped(prony, binary, {
    args: LOAD, meanwhile: async ({ pid }) => { await sleep(1500); process.kill(pid, 'SIGKILL'); } });
  const by = checkRows(rows, 200);
  checkRecord(record, rows);
  assert.ok(by.truncated?.length > 20, 'the streams in flight are truncated');
  assert.ok(by.connect?.length > 0, 'later requests find no server');
  assert.deepEqual(Object.keys(by).filter((status) => !['ok', 'truncated', 'connect'].includes(status)), []);
  assert.ok(code === 0 || code === 1, `exit code ${code}`);
  console.log(`server killed: ${JSON.stringify(record.metrics.errors)}`);
}
{
  const begin = Date.now();
  const { rows, record } = await benchStamped(prony, binary, {
    args: LOAD, meanwhile: async ({ pid }) => {
      await sleep(1500);
      process.kill(pid, 'SIGSTOP');
      await sleep(4000);
      process.kill(pid, 'SIGCONT');
    } });
  assert.ok(Date.now() - begin < 20_000, 'it ends');
  const by = checkRows(rows, 200);
  checkRecord(record, rows);
  assert.ok(by.timeout_stall?.length > 20 && by.timeout_ttft?.length > 20, JSON.stringify(record.metrics.errors));
  for (const row of [...by.timeout_stall, ...by.timeout_ttft]) {
    const since = row.status === 'timeout_stall' ? row.t_last_token_ns : row.t_send_ns;
    const waited = (row.t_close_ns - since) / 1e9;
    assert.ok(waited > 0.99 && waited < 3, `given up after ${waited} s instead of 1`);
  }
  console.log(`server paused: ${JSON.stringify(record.metrics.errors)}`);
}
{
  // A client that does not get to read: the kernel keeps the data and the newest stamp only. Nothing is
  // lost, and the run says that it is spoilt.
  const stamps = path.join(scratch, 'slow.stamps'), out = path.join(scratch, 'slow');
  const server = await startServer(binary, ['--stamps', stamps]);
  const shell = `"$0" "$@" & p=$!; for i in 1 2 3 4 5; do sleep 0.3; kill -STOP $p; sleep 0.1; kill -CONT $p; done; wait $p`;
  const result = await run('/bin/sh', ['-c', shell, prony, 'bench', '--base-url', server.url, '--endpoint-type', 'openai-chat',
    '--model', 'stamped', '--json', '--save-detailed', '--out', out, '--input-len', '8', ...LOAD]);
  await server.stop();
  assert.equal(result.code, 1, result.stderr);
  const record = JSON.parse(result.stdout);
  const rows = readFileSync(path.join(out, 'requests.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  checkRows(rows, 200);
  checkRecord(record, rows);
  assert.equal(record.metrics.completed, 200);
  assert.equal(record.validity.valid, false);
  assert.ok(record.validity.reasons.some((reason) => /token events|client was late/.test(reason)), `${record.validity.reasons}`);
  console.log(`client stopped: ${record.validity.reasons[0]}`);
}
{
  // A cable pulled: the server lives in a network of its own, and the link goes down under the run.
  const name = `prony${process.pid % 10000}`, far = `${name}b`;
  const ip = (...args) => spawnSync('ip', args, { encoding: 'utf8' });
  const made = ip('netns', 'add', name).status === 0 &&
    ip('link', 'add', name, 'type', 'veth', 'peer', 'name', far).status === 0 &&
    ip('link', 'set', far, 'netns', name).status === 0 &&
    ip('addr', 'add', '10.213.77.1/30', 'dev', name).status === 0 && ip('link', 'set', name, 'up').status === 0 &&
    ip('-n', name, 'addr', 'add', '10.213.77.2/30', 'dev', far).status === 0 &&
    ip('-n', name, 'link', 'set', far, 'up').status === 0;
  try {
    if (!made) {
      console.log('dropped route: not tried, this user may not make a network namespace');
    } else {
      const out = path.join(scratch, 'dropped');
      const mock = await startServer('ip', ['netns', 'exec', name, prony, 'mock', '--host', '10.213.77.2', '--port', '0']);
      const finished = run(prony, ['bench', '--base-url', mock.url, '--endpoint-type', 'openai-chat', '--model', 'mock', '--json',
        '--save-detailed', '--on-invalid', 'warn', '--out', out, '--input-len', '8', ...LOAD], { timeoutMs: 60_000 });
      await sleep(1500);
      ip('link', 'set', name, 'down');
      const begin = Date.now();
      const result = await finished;
      assert.ok(Date.now() - begin < 20_000, 'it ends');
      await mock.stop();
      assert.notEqual(result.stdout, '', result.stderr);
      const rows = readFileSync(path.join(out, 'requests.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
      const by = checkRows(rows, 200);
      checkRecord(JSON.parse(result.stdout), rows);
      assert.ok(by.timeout_stall?.length > 20, Object.keys(by).join());
      console.log(`route dropped: ${JSON.stringify(JSON.parse(result.stdout).metrics.errors)}`);
    }
  } finally {
    ip('link', 'del', name);
    ip('netns', 'del', name);
  }
}
