// Telemetry end to end: /metrics of the mock and of our own server against the client's sums, the
// guard of the prefix cache, and GPUs played by a fake NVML (beside the program in a build with tests).
// Usage: node telemetry.test.mjs PATH/TO/prony
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { run, startServer } from './process.mjs';

const prony = path.resolve(process.argv[2]);
const fakeNvml = path.join(path.dirname(prony), 'libprony_fake_nvml.so');

async function bench(args, env = {}) {
  const done = await run(prony, ['bench', '--json', '--on-invalid', 'warn', ...args],
    { env: { ...process.env, PRONY_NVML: 'libno-such-library.so', ...env } });
  assert.equal(done.code, 0, done.stderr);
  return JSON.parse(done.stdout);
}
const seriesOf = (record) => Object.fromEntries(record.telemetry.series.map((one) => [one.name, one]));
const warningsOf = (record, text) => record.validity.warnings.filter((one) => one.includes(text));

const mock = await startServer(prony, ['mock', '--port', '0', '--ttft-ms', '20', '--itl-ms', '5']);
const onMock = ['--base-url', mock.url, '--endpoint-type', 'openai-chat', '--num-prompts', '40',
  '--max-concurrency', '4', '--output-len', '20', '--num-warmups', '3'];
{
  const record = await bench([...onMock, '--metrics-interval', '0.1']);
  const { telemetry } = record, { server } = telemetry;
  assert.equal(server.names, 'vllm');
  assert.equal(server.failed_scrapes, 0);
  assert.equal(server.differences.requests, 40); // without the warm-up
  assert.equal(server.differences.generation_tokens, 40 * 20);
  assert.ok(server.checks.length >= 2 && server.checks.every((one) => one.agree), JSON.stringify(server.checks));
  assert.equal(server.others_seen, false);
  assert.ok(server.scrapes >= 5);
  const series = seriesOf(record);
  assert.equal(series['server.running'].max, 4);
  assert.ok(series['host.busy'].n >= 5);
  assert.equal(telemetry.endpoint_is_local, true);
  // One axis: the readings lie in the run.
  for (const t of series['server.running'].t_ns) {
    assert.ok(t > telemetry.t_begin_ns - 3e9 && t < telemetry.t_end_ns + 3e9);
  }
  assert.ok(!telemetry.gpu && telemetry.notes.some((note) => note.includes('libno-such-library')));
}
{
  // Somebody else's requests in the same time.
  const other = bench([...onMock.slice(0, -2), '--num-prompts', '40']).catch(() => {});
  const record = await bench(onMock);
  await other;
  assert.ok(warningsOf(record, 'others used the server').length === 1, JSON.stringify(record.validity));
  assert.equal(record.telemetry.server.others_seen, true);
}
{
  const record = await bench([...onMock, '--server-metrics', 'off', '--gpu-telemetry', 'off']);
  assert.ok(!record.telemetry.server && !record.telemetry.gpu);
  assert.deepEqual(record.telemetry.notes, []);
  const wrong = await run(prony, ['bench', ...onMock, '--server-metrics', `${mock.url}/no-such-path`]);
  assert.equal(wrong.code, 3);
  assert.match(wrong.stderr, /--server-metrics: .*http 404/);
}
if (existsSync(fakeNvml)) {
  const record = await bench([...onMock, '--metrics-interval', '0.1'], { PRONY_NVML: fakeNvml, FAKE_NVML: 'throttled' });
  const [gpu] = record.telemetry.gpu;
  assert.equal(record.environment.gpus[0].name, 'Fake GPU');
  assert.equal(gpu.busy_time_mean, 0.75);
  assert.ok(Math.abs(gpu.dram_bandwidth_mean - 0.42) < 1e-9);
  assert.equal(gpu.energy_source, 'counter');
  assert.equal(gpu.throttled_fraction.power_cap, 1);
  const { energy } = record.telemetry;
  assert.ok(Math.abs(energy.gpu_j / energy.duration_s - 300) < 15, JSON.stringify(energy));
  assert.ok(Math.abs(energy.gpu_j_per_output_token - energy.gpu_j / 800) < 1e-9);
  const table = await run(prony, ['bench', ...onMock, '--on-invalid', 'warn'],
    { env: { ...process.env, PRONY_NVML: fakeNvml } });
  assert.match(table.stdout, /gpu0 +Fake GPU, busy time 75.0 %, DRAM bandwidth 42.0 %/);
  assert.match(table.stdout, /energy +GPU \d+ J, .* J per output token/);
}
assert.equal(await mock.stop(), 0);

// Our own server: every count agrees, fresh prompts find nothing in the cache, repeated ones do.
const serve = await startServer(prony, ['serve', '--model', 'dummy:test', '--device', 'cpu', '--port', '0']);
const onServe = ['--base-url', serve.url, '--tokenizer', 'byte', '--num-prompts', '20', '--max-concurrency', '2',
  '--input-len', '400', '--output-len', '8', '--ignore-eos', '--prompt-salt', '7'];
{
  const { server } = (await bench(onServe)).telemetry;
  const checked = server.checks.map((one) => one.what);
  for (const what of ['requests', 'prompt tokens', 'output tokens', 'mean TTFT', 'mean E2E']) {
    assert.ok(checked.includes(what), `${what} is not among ${checked}`);
  }
  for (const one of server.checks) {
    if (!one.what.startsWith('mean')) assert.equal(one.client, one.server, JSON.stringify(one));
  }
  assert.equal(server.prefix_cache.implied_fraction, 0);
  assert.equal(server.prefix_cache.as_implied, true);
}
{
  const record = await bench(onServe); // the same prompts again
  const cache = record.telemetry.server.prefix_cache;
  assert.ok(cache.hit_fraction > 0.8, JSON.stringify(cache));
  assert.equal(cache.as_implied, false);
  assert.equal(warningsOf(record, 'it had seen these prompts before').length, 1);
}
assert.equal(await serve.stop(), 0);
console.log('telemetry: server, cross-check, prefix cache, GPUs, energy');
