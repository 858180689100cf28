// `prony probe`: the document is what its schema says, and the entry that it writes is hardware "this".
// Usage: node probe.test.mjs PATH/TO/prony
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { run } from './process.mjs';
import { schemaFaults } from './schema.mjs';

const prony = path.resolve(process.argv[2]);
const home = mkdtempSync(path.join(tmpdir(), 'prony-probe-'));
process.once('exit', () => rmSync(home, { recursive: true, force: true }));
const env = { ...process.env, XDG_DATA_HOME: home };
const predict = () => run(prony, ['predict', '--model', 'dummy:small', '--hardware', 'this', '--engine', 'prony', '--input-len', '64',
  '--output-len', '16', '--json'], { env });

const before = await predict();
assert.equal(before.code, 2);
assert.match(before.stderr, /hardware 'this': found no .*hardware-this\.yaml, expected what `prony probe` writes\n$/);

const probed = await run(prony, ['probe', '--quick', '--json'], { env });
assert.equal(probed.code, 0, probed.stderr);
const document = JSON.parse(probed.stdout);
assert.deepEqual(schemaFaults(document, 'prony.probe.1'), []);
assert.equal(document.file, path.join(home, 'prony', 'hardware-this.yaml'));
assert.match(readFileSync(document.file, 'utf8'), /^schema: prony.hardware\/1\nid: this\n/);
assert.equal(document.sustained.length, 0);

const after = await predict();
assert.equal(after.code, 0, after.stderr);
const { metrics } = JSON.parse(after.stdout);
assert.ok(metrics.tpot_ms.mean > 0.1 && metrics.tpot_ms.mean < 5000, `TPOT ${metrics.tpot_ms.mean}`);

const own = path.join(home, 'own.yaml');
const table = await run(prony, ['probe', '--quick', '--threads', '1', '--out', own], { env });
assert.equal(table.code, 0, table.stderr);
assert.match(table.stdout, /memory read, +1 threads/);
assert.ok(table.stdout.includes(`wrote ${own}`));
const bad = await run(prony, ['probe', '--threads', '5000'], { env });
assert.equal(bad.code, 2);
console.log(`probe: ${(document.ceilings.read_bytes_per_s / 1e9).toFixed(1)} GB/s, ` +
  `${(document.ceilings.fp32_ops_per_s / 1e9).toFixed(0)} GFLOP/s fp32; predicted TPOT ${metrics.tpot_ms.mean.toFixed(2)} ms`);
