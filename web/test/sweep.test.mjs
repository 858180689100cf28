// Unit tests of the sweep page's pure parts: lines of equal value, series, grids.
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
    entryPoints: [path.join(here, '..', 'src', name)], bundle: true, format: 'esm', write: false, nodePaths: [modules],
  });
  return import(`data:text/javascript;base64,${Buffer.from(built.outputFiles[0].text).toString('base64')}`);
}
const { isolines, levelsOf } = await load('sweep_contour.ts');
const { seriesOf, gridOf } = await load('sweep_data.ts');
const { linearTicks, logTicks } = await load('ticks.ts');

test('a plane has straight lines, joined into one', () => {
  const grid = [[0, 1, 2, 3], [0, 1, 2, 3], [0, 1, 2, 3]];
  const lines = isolines(grid, 1.5);
  assert.equal(lines.length, 1);
  assert.equal(lines[0].length, 3);
  for (const [column] of lines[0]) assert.equal(column, 1.5);
  assert.deepEqual(lines[0].map(([, row]) => row).sort(), [0, 1, 2]);
});

test('a hill has a ring that closes', () => {
  const grid = [[0, 0, 0], [0, 4, 0], [0, 0, 0]];
  const lines = isolines(grid, 2);
  assert.equal(lines.length, 1);
  assert.deepEqual(lines[0][0], lines[0][lines[0].length - 1]);
  assert.equal(lines[0].length, 5);
});

test('a saddle has two lines that do not cross', () => {
  assert.equal(isolines([[1, 0], [0, 1]], 0.4).length, 2);
  assert.equal(isolines([[1, 0], [0, 1]], 0.6).length, 2);
});

test('nothing is drawn beside what is missing, and nothing outside the values', () => {
  assert.deepEqual(isolines([[0, 1], [null, 1]], 0.5), []);
  assert.deepEqual(isolines([[0, 1], [0, 1]], 2), []);
  assert.deepEqual(isolines([[1, 1], [1, 1]], 1), []);
  assert.equal(isolines([[0, 1, null], [0, 1, 1]], 0.5).length, 1);
});

// On a smooth field every point of a line lies where the field, linear between neighbours, has the
// level; and each crossing of a grid edge is in exactly one line (two for none).
test('lines of a random field lie where they should', () => {
  let state = 1;
  const random = () => (state = (state * 16807) % 2147483647) / 2147483647;
  for (let run = 0; run < 200; ++run) {
    const rows = 2 + Math.floor(random() * 6), columns = 2 + Math.floor(random() * 6);
    const grid = Array.from({ length: rows }, () => Array.from({ length: columns }, random));
    const level = random();
    let crossings = 0;
    for (let r = 0; r < rows; ++r) {
      for (let c = 0; c < columns; ++c) {
        if (c + 1 < columns && (grid[r][c] >= level) !== (grid[r][c + 1] >= level)) ++crossings;
        if (r + 1 < rows && (grid[r][c] >= level) !== (grid[r + 1][c] >= level)) ++crossings;
      }
    }
    const seen = new Set();
    for (const line of isolines(grid, level)) {
      for (const [x, y] of line) {
        const c = Math.floor(x), r = Math.floor(y);
        const value = x > c ? grid[r][c] + (x - c) * (grid[r][c + 1] - grid[r][c])
          : y > r ? grid[r][c] + (y - r) * (grid[r + 1][c] - grid[r][c]) : grid[r][c];
        assert.ok(Math.abs(value - level) < 1e-6, `${value} ${level}`);
        seen.add(`${x.toFixed(9)},${y.toFixed(9)}`);
      }
    }
    assert.equal(seen.size, crossings, 'every crossing is on a line');
  }
});

test('levels are round and inside', () => {
  const ticks = (low, high, log) => (log ? logTicks(low, high) : linearTicks(low, high));
  assert.deepEqual(levelsOf([[0, 100]], ticks), [20, 40, 60, 80]);
  assert.deepEqual(levelsOf([[5, 5]], ticks), []);
  assert.deepEqual(levelsOf([[null]], ticks), []);
  const log = levelsOf([[1.5, 900]], ticks);
  assert.ok(log.includes(10) && log.includes(100) && log.every((v) => v > 1.5 && v < 900));
});

test('series and grids', () => {
  const data = {
    axes: [{ name: 'target', values: ['a', 'b'], target: true }, { name: 'c', values: ['1', '2'], target: false },
      { name: 'i', values: ['8', '16', '32'], target: false }],
    metrics: [{ key: 'x', label: 'X', unit: 'ms' }], knees: [], loadAxis: 1, columnAxis: 2, rowAxis: 1, points: [],
  };
  for (let t = 0; t < 2; ++t) for (let c = 1; c >= 0; --c) for (let i = 0; i < 3; ++i) {
    data.points.push({ at: [t, c, i], overloaded: false, metrics: [t === 1 && c === 0 && i === 0 ? null : [100 * t + 10 * c + i, null, null]] });
  }
  const series = seriesOf(data, [1]);
  assert.deepEqual(series.map((s) => s.name), ['a, i 8', 'a, i 16', 'a, i 32', 'b, i 8', 'b, i 16', 'b, i 32']);
  assert.deepEqual(series[0].points.map((p) => p.at[1]), [0, 1], 'in the order of the axis');
  const planes = seriesOf(data, [2, 1]);
  assert.deepEqual(planes.map((s) => s.name), ['a', 'b']);
  assert.deepEqual(gridOf(data, planes[1], 2, 1, 0), [[null, 101, 102], [110, 111, 112]]);
});
