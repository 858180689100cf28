// `prony plan` from outside: its document, its exit codes, and that its figures are those of predict.
// Usage: node plan.test.mjs PATH/TO/prony [CASE...]
import assert from 'node:assert/strict';
import path from 'node:path';
import { run, runCases } from './process.mjs';

const prony = path.resolve(process.argv[2]);
const load = ['--model', 'llama-3.1-8b', '--input-len', '1024', '--output-len', '256'];
const plan = (args) => run(prony, ['plan', ...load, ...args]);

async function refuses(args, text) {
  const got = await run(prony, ['plan', ...args]);
  assert.equal(got.code, 2, got.stderr);
  assert.ok(got.stderr.includes(text), `${got.stderr} should say ${text}`);
}

const tests = {
  async badUsage() {
    await refuses([], '--model: missing');
    await refuses(load, 'expected --request-rate or --concurrency');
    const rate = [...load, '--request-rate', '5'];
    await refuses([...rate, '--hardware', 'h1000'], 'h1000');
    await refuses([...rate, '--tp', '2,x'], "--tp: found 'x', expected whole numbers");
    await refuses([...rate, '--tp', '0'], '--tp: found 0, expected 1 to 4096');
    await refuses([...rate, '--slo', 'ttft_p42<1ms'], "unknown statistic 'p42'");
    await refuses([...rate, '--price', 'nobody/nothing'], "unknown price 'nobody/nothing'");
    await refuses([...rate, '--weight-dtype', 'fp7'], "--weight-dtype: found 'fp7'");
    await refuses([...rate, '--max-devices', '0'], '--max-devices: found 0');
  },
  async figuresAreThoseOfPredict() {
    const got = await plan(['--request-rate', '30', '--slo', 'ttft_p99<=600ms,tpot_p99<=40ms', '--json']);
    assert.equal(got.code, 0, got.stderr);
    const answer = JSON.parse(got.stdout);
    const best = answer.cheapest;
    assert.ok(best.usd_per_hour > 0 && answer.front.length > 1 && answer.reasons.length > 1);
    assert.equal(answer.feasible + answer.reasons.reduce((sum, each) => sum + each.count, 0), answer.configurations);
    assert.ok(answer.cheapest_by_device.every((each) => each.usd_per_hour >= best.usd_per_hour));
    const one = await run(prony, ['predict', ...load, '--hardware', best.hardware, '--tp', `${best.tp}`, '--pp', `${best.pp}`,
      '--weight-dtype', best.weight_dtype, '--max-num-seqs', `${best.max_num_seqs}`, '--request-rate',
      `${30 / best.replicas}`, '--json']);
    assert.equal(one.code, 0, one.stderr);
    const { metrics } = JSON.parse(one.stdout);
    for (const metric of ['ttft_ms', 'tpot_ms', 'e2e_ms']) {
      assert.ok(Math.abs(metrics[metric].mean / best[metric].mean - 1) < 1e-9, metric);
      assert.ok(Math.abs(metrics[metric].p99 / best[metric].p99 - 1) < 1e-9, metric);
    }
    assert.ok(best.ttft_ms.p99 <= 600 && best.tpot_ms.p99 <= 40);
    console.log(`${answer.predicted} predicted in ${answer.elapsed_s.toFixed(3)} s`);
  },
  async nothingHoldsTheImpossible() {
    const got = await plan(['--concurrency', '16', '--slo', 'tpot_mean<=0.01ms']);
    assert.equal(got.code, 1, got.stderr);
    assert.match(got.stdout, / 0 feasible/);
    assert.match(got.stdout, /slo: tpot_mean<=0.01ms; nearest/);
  },
  async mixturesSpreadTheirExperts() {
    const got = await run(prony, ['plan', '--model', 'mixtral-8x7b', '--input-len', '512', '--output-len', '128',
      '--request-rate', '4', '--hardware', 'h100-sxm', '--tp', '2', '4', '--dp', '1', '2', '--json']);
    assert.equal(got.code, 0, got.stderr);
    const answer = JSON.parse(got.stdout);
    assert.ok(answer.front.every((each) => [1, each.tp * each.dp].includes(each.ep)));
  },
};

await runCases(Object.keys(tests), (name) => tests[name]());
