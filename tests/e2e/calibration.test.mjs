// From a table to a calibrated answer: fit --model engine writes a file, predict and plan use it.
// Usage: node calibration.test.mjs PATH/TO/prony [CASE...]
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { run, runCases } from './process.mjs';

const prony = path.resolve(process.argv[2]);
const scratch = mkdtempSync(path.join(tmpdir(), 'prony-calibration-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
const file = (name) => path.join(scratch, name);
const deployment = ['--hardware', 'h100-sxm', '--engine', 'vllm'];

async function json(args) {
  const got = await run(prony, [...args, '--json']);
  assert.equal(got.code, 0, got.stderr);
  return JSON.parse(got.stdout);
}

const predict = (model, clients, more = []) => json(['predict', '--model', model, ...deployment, '--input-len', '512',
  '--output-len', '256', '--concurrency', `${clients}`, ...more]);

// What a GPU that is 1.3 times as slow would have been measured as, for two models.
async function table(name, models, factor) {
  const lines = ['model_id,tp,input_len,output_len,concurrency,tpot_ms'];
  for (const model of models) {
    for (const clients of [1, 8, 32]) {
      const { metrics } = await predict(model, clients);
      lines.push(`${model},1,512,256,${clients},${metrics.tpot_ms.mean * factor}`);
    }
  }
  writeFileSync(file(name), lines.join('\n') + '\n');
}

const fit = (name, out, more = []) => json(['fit', file(name), '--model', 'engine', ...deployment, '--group', 'model_id',
  '--out', file(out), ...more]);

async function refuses(args, text) {
  const got = await run(prony, args);
  assert.equal(got.code, 2, got.stderr);
  assert.ok(got.stderr.includes(text), `${got.stderr} should say ${text}`);
}

const tests = {
  async aModelThatTheFitHasNotSeenIsPredictedBetter() {
    await table('slow.csv', ['llama-3.1-8b', 'qwen3-0.6b'], 1.3);
    const fitted = await fit('slow.csv', 'slow.yaml');
    assert.ok(fitted.cross_validation.mape < 0.1, JSON.stringify(fitted.cross_validation));
    const plain = await predict('qwen3-32b', 8, ['--tp', '1', '--weight-dtype', 'fp8']);
    const calibrated = await predict('qwen3-32b', 8, ['--tp', '1', '--weight-dtype', 'fp8', '--calibration', file('slow.yaml')]);
    const ratio = calibrated.metrics.tpot_ms.mean / plain.metrics.tpot_ms.mean;
    assert.ok(ratio > 1.2 && ratio < 1.35, `${ratio}`);
    const { calibration } = calibrated.prediction;
    assert.equal(calibration.rows, 6);
    assert.ok(calibration.device > 1.1 && calibration.held_out_mape < 0.1);
    assert.equal(plain.prediction.calibration, undefined);
    // The same for each row of a file.
    writeFileSync(file('rows.jsonl'), `{"model":"qwen3-32b","weight-dtype":"fp8","input-len":512,"output-len":256,"concurrency":8,"hardware":"h100-sxm","calibration":"${file('slow.yaml')}"}\n`);
    const rows = await run(prony, ['predict', '--rows', file('rows.jsonl')]);
    assert.ok(Math.abs(JSON.parse(rows.stdout).tpot_ms / calibrated.metrics.tpot_ms.mean - 1) < 1e-9);
  },
  async aPlanTakesItForItsDevice() {
    const question = ['plan', '--model', 'llama-3.1-8b', '--input-len', '512', '--output-len', '256', '--request-rate', '10',
      '--hardware', 'h100-sxm', 'l40s', '--tp', '1', '--pp', '1', '--weight-dtype', 'bf16'];
    const plain = await json(question), slow = await json([...question, '--calibration', file('slow.yaml')]);
    const fastest = (plan, device) => Math.max(...plan.front.filter((each) => each.hardware === device).map((each) => each.tokens_per_s_user));
    assert.ok(fastest(slow, 'h100-sxm') < 0.85 * fastest(plain, 'h100-sxm'));
    assert.ok(slow.question.devices[0].calibration.device > 1.1);
    assert.equal(slow.question.devices[1].calibration, null);
  },
  async filesThatAreNotForIt() {
    const ask = ['predict', '--model', 'llama-3.1-8b', '--input-len', '512', '--output-len', '64', '--concurrency', '4'];
    await refuses([...ask, '--hardware', 'l40s', '--calibration', file('slow.yaml')], 'is of vllm on h100-sxm, expected vllm on l40s');
    const none = await run(prony, [...ask, ...deployment, '--calibration', file('none.yaml')]);
    assert.equal(none.code, 3, none.stderr);
    const text = readFileSync(file('slow.yaml'), 'utf8');
    writeFileSync(file('absurd.yaml'), text.replace(/device: \{value: [0-9.]+/, 'device: {value: 50'));
    await refuses([...ask, ...deployment, '--calibration', file('absurd.yaml')], 'device: found 50, expected a factor from 0.2 to 5');
    writeFileSync(file('key.yaml'), `${text}extra: 1\n`);
    await refuses([...ask, ...deployment, '--calibration', file('key.yaml')], 'extra');
    writeFileSync(file('step.csv'), 'roof_ms,layers,time_ms\n1,32,2\n2,32,4\n3,40,6\n4,80,9\n');
    await run(prony, ['fit', file('step.csv'), '--model', 'step', ...deployment, '--out', file('step.yaml')]);
    await refuses([...ask, ...deployment, '--calibration', file('step.yaml')], "model: found 'step', expected engine");
    await refuses([...ask, ...deployment, '--calibration', file('slow.yaml'), file('slow.yaml')], 'are both of vllm on h100-sxm');
  },
};

await runCases(Object.keys(tests), (name) => tests[name]());
