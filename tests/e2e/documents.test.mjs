// The documents of cost, fit, audit, predict and plan against their schemas, and the catalogue from outside.
// Usage: node documents.test.mjs PATH/TO/prony [CASE...]
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { run, runCases } from './process.mjs';
import { schemaFaults } from './schema.mjs';

const prony = path.resolve(process.argv[2]);
const scratch = mkdtempSync(path.join(tmpdir(), 'prony-documents-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));

async function document(args, name, code = 0) {
  const got = await run(prony, [...args, '--json']);
  assert.equal(got.code, code, got.stderr);
  const json = JSON.parse(got.stdout);
  assert.equal(json.schema, `prony.${name}/1`);
  assert.deepEqual(schemaFaults(json, `prony.${name}.1`), []);
  // The schema is no rubber stamp: a key that is not known, and one that is gone, are faults.
  assert.notEqual(schemaFaults({ ...json, another: 1 }, `prony.${name}.1`).length, 0);
  const { schema, ...rest } = json;
  assert.notEqual(schemaFaults(rest, `prony.${name}.1`).length, 0, schema);
  return json;
}

function table(name, text) {
  const file = path.join(scratch, name);
  writeFileSync(file, text);
  return file;
}

const tests = {
  async cost() {
    const price = ['cost', '--price', 'h100-sxm-hyperscaler'];
    const hour = await document(price, 'cost');
    assert.ok(Math.abs(hour.usd_per_gpu_hour.total / 1.3 - 1) < 0.05, 'the published hour within 5 %');
    assert.equal(hour.usd_per_1k.output_tokens, null);
    const served = await document([...price, '--output-throughput', '24524.9', '--gpus', '8', '--what-if', 'life_years=2'], 'cost');
    assert.ok(Math.abs(served.usd_per_1k.output_tokens - hour.usd_per_gpu_hour.total * 8 / 3600 / 24.5249) < 1e-12);
    assert.ok(served.joule_per_token.output > 0 && served.what_if.length === 1);
    await document(['cost', '--price', 'w1-a100-own'], 'cost');
    await document(['cost', '--price', 'market/h100-sxm-low'], 'cost');
    await document(['cost', '--capex-usd', '30000'], 'cost');
  },
  async costOfAPrediction() {
    const got = await run(prony, ['predict', '--model', 'llama-3.1-8b', '--hardware', 'h100-sxm', '--concurrency', '16', '--json']);
    const file = table('record.json', got.stdout);
    const priced = await document(['cost', '--price', 'market/h100-sxm-high', '--record', file, '--gpus', '1'], 'cost');
    const speed = JSON.parse(got.stdout).metrics.output_throughput;
    assert.ok(Math.abs(priced.usd_per_1k.output_tokens / (5 / 3.6 / speed) - 1) < 1e-9);
  },
  async fit() {
    const link = table('link.csv', 'bytes,time_us,kind\n1,2,a\n100,3,a\n1000,9,b\n5000,40,b\n9000,70,c\n20000,150,c\n');
    const alpha = await document(['fit', link, '--model', 'alpha-beta', '--group', 'kind'], 'fit');
    assert.equal(alpha.cross_validation.folds.length, 3);
    const exact = await document(['fit', table('two.csv', 'bytes,time_us\n1,2\n1000,9\n'), '--model', 'alpha-beta'], 'fit');
    assert.equal(exact.parameters[0].ci95, null, 'two rows for two parameters have no error');
    const knee = table('knee.csv', 'x,y,bandwidth_fraction\n' + [1, 2, 3, 4, 5, 6, 7, 8].map((x) => `${x},${Math.min(x, 4) + x / 50},${x / 8}`).join('\n') + '\n');
    const bent = await document(['fit', knee, '--model', 'knee'], 'fit');
    assert.ok(bent.knee.supported && 'knee_by_rule' in bent);
    await document(['fit', table('decay.csv', 'load,base,observed\na,10,9\na,10,8\nb,10,4\n'), '--model', 'decay'], 'fit');
    const engine = table('engine.csv', 'model_id,input_len,output_len,concurrency,tpot_ms\nllama-3.1-8b,512,128,1,9\nllama-3.1-8b,512,128,8,10\nqwen3-8b,512,128,8,11\n');
    const factors = await document(['fit', engine, '--model', 'engine', '--hardware', 'h100-sxm', '--engine', 'vllm'], 'fit');
    assert.deepEqual(factors.parameters.map((each) => each.name), ['device', 'link', 'engine']);
  },
  async audit() {
    const all = await document(['audit'], 'audit');
    assert.deepEqual(all.refuted_controls, []);
    assert.equal(all.claims.filter((each) => !each.control).length, 69);
    assert.equal(Object.values(all.summary).reduce((a, b) => a + b, 0), all.claims.length);
  },
  async predict() {
    const ask = ['predict', '--model', 'llama-3.1-70b', '--hardware', 'h100-sxm', '--weight-dtype', 'fp8', '--concurrency', '16'];
    const { rows } = await document([...ask, '--sweep', 'tp=1,2,4', '--sweep', 'input-len=128,100000'], 'predict');
    assert.equal(rows.length, 6);
    assert.ok(rows.some((row) => 'error' in row) && rows.some((row) => row.ttft_ms > 0), 'some fit, some do not');
    const got = await run(prony, [...ask, '--tp', '4', '--json']);
    assert.deepEqual(schemaFaults(JSON.parse(got.stdout), 'prony.record.1'), []);
    const { prediction } = JSON.parse(got.stdout);
    assert.ok(prediction.error_band.tpot.mape > 0 && prediction.distance_to_saturation < 1);
    assert.ok(prediction.itl_with_prefill_ms > prediction.itl_decode_only_ms);
  },
  async nearSaturationThereIsNoTtft() {
    const ask = ['predict', '--model', 'llama-3.1-8b', '--hardware', 'h100-sxm', '--input-len', '512', '--output-len', '128', '--json'];
    const most = JSON.parse((await run(prony, [...ask, '--request-rate', '1'])).stdout).prediction.max_request_throughput;
    for (const [share, known] of [[0.5, true], [0.95, false]]) {
      const record = JSON.parse((await run(prony, [...ask, '--request-rate', `${share * most}`])).stdout);
      assert.deepEqual(schemaFaults(record, 'prony.record.1'), []);
      assert.equal(record.metrics.ttft_ms !== null, known);
      assert.equal(record.prediction.p99.ttft_ms !== null, known);
      if (known) {
        const { p99 } = record.prediction;
        assert.ok(p99.ttft_ms > record.metrics.ttft_ms.mean && p99.tpot_ms > record.metrics.tpot_ms.mean);
        assert.equal(record.metrics.ttft_ms.p99, p99.ttft_ms);
        assert.equal(record.metrics.ttft_ms.p50, null, 'no other percentile has a model');
        assert.deepEqual(Object.keys(p99.ttft_parts_ms), ['request', 'prefill', 'prompts_before', 'free_place', 'common_start']);
      } else {
        assert.match(record.prediction.ttft_reason, /not predictable within 10 % of saturation/);
        assert.ok(record.validity.warnings.some((text) => text.includes('saturation')));
      }
    }
  },
  async plan() {
    const answer = await document(['plan', '--model', 'qwen3-8b', '--input-len', '512', '--output-len', '128', '--request-rate', '8',
      '--slo', 'ttft_p99<=500ms', '--hardware', 'l40s', 'a100-80-sxm', 'rtx-4090'], 'plan');
    assert.ok(answer.without_price > 0, 'no book has the price of an RTX 4090');
    await document(['plan', '--model', 'qwen3-8b', '--concurrency', '8', '--slo', 'e2e_mean<=1ms'], 'plan', 1);
  },
  async catalog() {
    const list = await run(prony, ['catalog', 'list']);
    assert.equal(list.code, 0);
    for (const id of ['a100-40-pcie', 'a100-40-sxm', 'a100-80-pcie', 'a100-80-sxm', 'a800-80-sxm', 'h100-sxm', 'h100-pcie', 'h100-nvl',
      'h800-sxm', 'h20-sxm', 'h200-sxm', 'l40', 'l40s', 'l4', 'rtx-4090', 'jetson-agx-orin-64', 'b200-sxm', 'gb200', 'mi300x', 'tpu-v4',
      'tpu-v5e', 'tpu-v5p', 'cpu-host', 'vllm', 'sglang', 'trtllm', 'llamacpp', 'prony']) {
      assert.ok(list.stdout.includes(`  ${id}\n`), id);
    }
    assert.equal((await run(prony, ['catalog', 'check'])).code, 0);
    const show = await run(prony, ['catalog', 'show', 'h100-sxm']);
    assert.match(show.stdout, /unit: TFLOP\/s dense/);
    const bad = table('bad.yaml', show.stdout.replace('id: h100-sxm', 'id: bad').replace('unit: TFLOP/s dense', 'unit: TFLOP/s sparse'));
    const refused = await run(prony, ['catalog', 'check', bad]);
    assert.equal(refused.code, 2, refused.stderr);
    assert.match(refused.stderr, /bad\.yaml:\d+: /);
  },
};

await runCases(Object.keys(tests), (name) => tests[name]());
