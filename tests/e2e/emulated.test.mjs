// `prony serve --device emulated:...`: a client meets the timing that the step model says, and is told
// that it is no real device; a bench of it is marked as such everywhere.
// Usage: node emulated.test.mjs PATH/TO/prony
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { run, startServer } from './process.mjs';
import { busy } from './stamped.mjs';

const prony = path.resolve(process.argv[2]);
const scratch = mkdtempSync(path.join(tmpdir(), 'prony-emulated-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
const MODEL = 'llama-3.1-8b', HARDWARE = 'h100-sxm';
const serve = (...more) => startServer(prony, ['serve', '--port', '0', '--model', MODEL, '--device', `emulated:${HARDWARE}`, ...more]);

async function bench(url, args) {
  const out = path.join(scratch, `run${Math.random()}`);
  const got = await run(prony, ['bench', '--base-url', url, '--endpoint-type', 'openai-chat', '--model', MODEL, '--json',
    '--on-invalid', 'warn', '--progress', 'off', '--out', out, ...args]);
  assert.equal(got.code, 0, got.stderr);
  return { record: JSON.parse(got.stdout), page: readFileSync(path.join(out, 'report.html'), 'utf8') };
}

const server = await serve();
const version = await (await fetch(`${server.url}/version`)).json();
assert.equal(version.device, `emulated:${HARDWARE}`);
const answer = await fetch(`${server.url}/v1/chat/completions`, { method: 'POST', headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify({ model: MODEL, messages: [{ role: 'user', content: 'hello' }], max_tokens: 8, seed: 3 }) });
assert.equal(answer.headers.get('x-prony-device'), `emulated:${HARDWARE}`);
const { choices, usage } = await answer.json();
assert.match(choices[0].message.content, /^[a-z]{8}$/);
assert.equal(usage.completion_tokens, 8);

const loaded = busy();
const alone = () => bench(server.url, ['--max-concurrency', '1', '--num-prompts', '12', '--input-len', '512', '--output-len', '101']);
let { record, page } = await alone();
assert.equal(record.system.kind, 'emulated');
assert.equal(record.system.device, `emulated:${HARDWARE}`);
assert.ok(page.includes('>emulated h100-sxm<'), 'every card says so');
const asked = JSON.parse((await run(prony, ['predict', '--model', MODEL, '--hardware', HARDWARE, '--engine', 'vllm', '--input-len', '512',
  '--output-len', '101', '--concurrency', '1', '--json'])).stdout).metrics;
const off = (found, expected) => Math.abs(found - expected);
// A host that stopped for a moment is late once; one that is too slow is late again.
for (let again = 0; again < 2 && off(record.metrics.itl_ms.p99, asked.tpot_ms.mean) >= 1; ++again) ({ record, page } = await alone());
// Of a decode step; its context grows by 100 tokens over the answer, which is 0.02 ms.
assert.ok(off(record.metrics.itl_ms.p50, asked.tpot_ms.mean) < (loaded ? 2 : 0.2),
  `ITL p50 ${record.metrics.itl_ms.p50}, the model says ${asked.tpot_ms.mean}`);
if (!loaded) {
  assert.ok(off(record.metrics.itl_ms.p99, asked.tpot_ms.mean) < 1, `ITL p99 ${record.metrics.itl_ms.p99}, the model says ${asked.tpot_ms.mean}`);
}
await server.stop();

// Limits are the profile's, or those of the flags; noise widens the gaps and keeps their mean.
const small = await serve('--max-num-seqs', '2', '--step-noise', '0.3', '--num-kv-blocks', '512');
const pair = await bench(small.url, ['--max-concurrency', '4', '--num-prompts', '12', '--input-len', '64', '--output-len', '50']);
const { metrics } = pair.record;
assert.ok(metrics.ttft_ms.mean > 5 * asked.tpot_ms.mean, 'half of the requests wait for a place');
assert.ok(metrics.itl_ms.sd > 0.1 * metrics.itl_ms.mean, `noise: sd ${metrics.itl_ms.sd} of mean ${metrics.itl_ms.mean}`);
await small.stop();

for (const [args, text, code] of [
  [['--device', 'emulated:h1000'], "unknown hardware 'h1000'", 2],
  [['--device', 'gpu'], "--device: found 'gpu', expected cpu, cuda or emulated:HARDWARE", 2],
  [['--device', 'emulated:l4', '--model', 'llama-3.1-70b'], 'does not fit on 1 x l4', 3],
  [['--device', 'emulated:l4', '--step-noise', '-1'], '--step-noise: found -1', 2],
  [['--device', 'emulated:l4', '--step-time-profile', '/no/such'], '/no/such: no such file or folder', 2]]) {
  const got = await run(prony, ['serve', '--port', '0', '--model', MODEL, ...args]);
  assert.equal(got.code, code, got.stderr);
  assert.ok(got.stderr.includes(text) && got.stderr.trim().split('\n').length === 1, got.stderr);
}
console.log(`ITL p50 ${record.metrics.itl_ms.p50.toFixed(3)} p99 ${record.metrics.itl_ms.p99?.toFixed(3)} ms, ` +
  `the model says ${asked.tpot_ms.mean.toFixed(3)}${loaded ? ' (busy host)' : ''}`);
