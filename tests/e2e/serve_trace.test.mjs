// `prony serve --trace FILE`: a table on stderr and an event file after the last step, whose totals
// agree with what was asked of the server, for each weight dtype. Usage: node serve_trace.test.mjs
// PATH/TO/prony
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { run, startServer } from './process.mjs';

const program = process.argv[2];
const folder = mkdtempSync(path.join(os.tmpdir(), 'prony-trace-'));
process.once('exit', () => rmSync(folder, { recursive: true, force: true }));

async function traced(dtype) {
  const file = path.join(folder, `${dtype}.json`);
  const server = await startServer(program,
    ['serve', '--model', 'dummy:test', '--port', '0', '--weight-dtype', dtype, '--trace', file]);
  const answer = await fetch(`${server.url}/v1/completions`, {
    method: 'POST', headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'dummy:test', prompt: 'once upon a time', max_tokens: 9, temperature: 0, ignore_eos: true }),
  });
  const { usage } = await answer.json();
  assert.equal(await server.stop(), 0, server.stderr());
  const trace = JSON.parse(readFileSync(file, 'utf8'));
  assert.equal(trace.prony.schema, 'prony.trace/1');
  assert.equal(trace.prony.prefill.tokens, usage.prompt_tokens);
  assert.equal(trace.prony.decode.tokens, usage.completion_tokens - 1);
  for (const phase of ['prefill', 'decode']) {
    const { operators, time_ns, other_ns } = trace.prony[phase];
    const spent = operators.reduce((sum, o) => sum + o.time_ns, 0);
    assert.equal(spent + other_ns, time_ns);
    assert.ok(operators.some((o) => o.operator === 'gate-up' && o.bytes > 0 && o.flops > 0));
    assert.match(server.stderr(), new RegExp(`${phase}: \\d+ steps`));
  }
  for (const rate of Object.values(trace.prony.ceilings)) assert.ok(rate > 0);
  const calls = ['prefill', 'decode'].flatMap((p) => trace.prony[p].operators).reduce((n, o) => n + o.calls, 0);
  assert.equal(trace.traceEvents.length, calls);
  return trace.prony.decode.operators.find((o) => o.operator === 'gate-up').bytes;
}

const bytes = {};
for (const dtype of ['fp32', 'bf16', 'int8']) bytes[dtype] = await traced(dtype);
assert.ok(bytes.fp32 > bytes.bf16 && bytes.bf16 > bytes.int8, JSON.stringify(bytes));

const refused = await run(program, ['serve', '--model', 'dummy:test', '--port', '0', '--trace', path.join(folder, 'none/x.json')]);
assert.equal(refused.code, 3, refused.stderr);
assert.match(refused.stderr, /none/);
console.log('serve_trace: ok');
