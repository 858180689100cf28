// Unit tests of the page script's pure parts, bundled as the page bundles them.
import assert from 'node:assert/strict';
import path from 'node:path';
import { createRequire } from 'node:module';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const modules = process.env.PRONY_WEB_MODULES ?? path.join(here, '..', 'node_modules');
const { buildSync } = createRequire(path.join(modules, 'x.js'))('esbuild');

async function load(name) {
  const built = buildSync({
    entryPoints: [path.join(here, '..', 'src', name)], bundle: true, format: 'esm', write: false,
    nodePaths: [modules],
  });
  const text = built.outputFiles[0].text;
  return import(`data:text/javascript;base64,${Buffer.from(text).toString('base64')}`);
}
const { formatNumber, formatTick, formatMs, formatPercent } = await load('format.ts');
const { logTicks, linearTicks } = await load('ticks.ts');
const { decodeRequests, decodeEvents, sorted } = await load('requests.ts');
const { telemetryStrips } = await load('telemetry.ts');

test('numbers have about three digits and grouped thousands', () => {
  const cases = [[0, '0'], [0.4123, '0.412'], [4.1234, '4.12'], [41.234, '41.2'], [412.3, '412'],
    [4123.4, '4,123'], [1234567, '1,234,567'], [99.96, '100'], [9.996, '10.0'], [0.99961, '1.00'],
    [-1234.6, '-1,235']];
  for (const [value, text] of cases) assert.equal(formatNumber(value), text);
});

test('milliseconds become seconds from ten seconds on', () => {
  assert.equal(formatMs(9999), '9,999 ms');
  assert.equal(formatMs(12345), '12.3 s');
  assert.equal(formatPercent(0.5), '50 %');
  assert.equal(formatPercent(0.99987), '99.99 %');
});

test('ticks read without noise', () => {
  assert.equal(formatTick(0.30000000000000004), '0.3');
  assert.equal(formatTick(20000), '20,000');
});

test('a logarithmic axis of any width has two to ten ticks, inside and ascending', () => {
  for (let low = 1e-3; low < 1e5; low *= 1.37) {
    for (const ratio of [1.05, 1.3, 2, 5, 10, 33, 100, 999, 1e4, 1e6, 1e9]) {
      const high = low * ratio;
      const ticks = logTicks(low, high);
      assert.ok(ticks.length >= 2 && ticks.length <= 10, `${low}..${high}: ${ticks}`);
      for (let i = 0; i < ticks.length; ++i) {
        assert.ok(ticks[i] >= low * (1 - 1e-9) && ticks[i] <= high * (1 + 1e-9), `${low}..${high}: ${ticks}`);
        assert.ok(i === 0 || ticks[i] > ticks[i - 1]);
      }
    }
  }
});

test('linear ticks are multiples of one round step', () => {
  assert.deepEqual(linearTicks(0, 100), [0, 20, 40, 60, 80, 100]);
  assert.deepEqual(linearTicks(0, 83), [0, 20, 40, 60, 80]);
  assert.deepEqual(linearTicks(38, 52), [40, 45, 50]);
  for (let high = 1e-3; high < 1e6; high *= 1.7) {
    const ticks = linearTicks(0, high);
    assert.ok(ticks.length >= 2 && ticks.length <= 6, `${high}: ${ticks}`);
  }
});

// The encoder of report/request_list.cpp, written again.
function digits(values) {
  const bytes = [];
  for (let value of values) {
    for (; value >= 128; value = Math.floor(value / 128)) bytes.push((value % 128) + 128);
    bytes.push(value);
  }
  return Buffer.from(bytes).toString('base64');
}

test('requests come out of their encoding', () => {
  // index step, start step in us (zigzag), queue, ttft, e2e, end (us + 1, 0 unknown), in, out, status
  const rows = digits([5, 2e6, 1001, 50_001, 90_001, 92_001, 300, 5, 0, 2, 3, 0, 0, 0, 7_001, 4e6, 0, 3]);
  const c = decodeRequests({ n: 9, shown: 2, rows, statuses: [], events: {}, errors: {} });
  assert.deepEqual([...c.index], [5, 7]);
  assert.deepEqual([...c.startS], [1, 0.999998]);
  assert.deepEqual([...c.queueMs], [1, NaN]);
  assert.deepEqual([...c.ttftMs], [50, NaN]);
  assert.deepEqual([...c.tpotMs], [10, NaN]);
  assert.deepEqual([...c.endMs], [92, 7]);
  assert.deepEqual([...c.input], [300, 4e6]);
  assert.deepEqual([...c.status], [0, 3]);
  assert.deepEqual([...sorted(c, 'ttftMs', true, () => true)], [0, 1]);
  assert.deepEqual([...sorted(c, 'ttftMs', false, () => true)], [0, 1]);  // unknown is last either way
  assert.deepEqual([...sorted(c, 'index', true, () => true)], [1, 0]);
  assert.deepEqual([...sorted(c, 'index', true, (i) => i === 0)], [0]);
  assert.deepEqual(decodeEvents(digits([50_000, 10_000, 0, 500])), [50, 60, 60, 60.5]);
});

test('telemetry shares a strip by source and unit', () => {
  const one = (name, unit, source) => ({ name, unit, source, t: [0], v: [1] });
  const strips = telemetryStrips([one('a', 'W', 'gpu'), one('b', '%', 'gpu'), one('c', 'W', 'gpu'), one('d', '', 'host')]);
  assert.deepEqual(strips.map((s) => [s.name, s.series.map((x) => x.name).join()]), [['gpu: W', 'a,c'], ['gpu: %', 'b'], ['host', 'd']]);
});
