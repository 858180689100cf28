// The files of `prony bench` in other programs' hands: the HdrHistogram log read by
// hdr-histogram-js, the CSV and the trace held against requests.jsonl.
// Usage: node bench_outputs.test.mjs PATH/TO/prony. Exits 77 without hdr-histogram-js.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { run, startServer } from './process.mjs';

const prony = path.resolve(process.argv[2]);
let hdr;
try {
  hdr = await import('hdr-histogram-js');
} catch {
  console.log('skipped: hdr-histogram-js is not installed (npm ci in tests/e2e)');
  process.exit(77);
}
const { HistogramLogReader, build } = hdr.default ?? hdr;

const out = fs.mkdtempSync(path.join(os.tmpdir(), 'prony-outputs-'));
try {
  const mock = await startServer(prony, ['mock', '--port', '0', '--ttft-ms', '20', '--itl-ms', '4']);
  const REQUESTS = 400, TOKENS = 12;
  const bench = await run(prony, [
    'bench', '--base-url', mock.url, '--endpoint-type', 'openai-chat', '--model', 'mock', '--request-rate', '120',
    '--num-prompts', String(REQUESTS), '--input-len', '8', '--output-len', String(TOKENS), '--on-invalid', 'warn',
    '--json', '--out', out, '--save-hdr', '--save-csv', '--save-trace'], { timeoutMs: 60_000 });
  await mock.stop();
  assert.equal(bench.code, 0, bench.stderr);
  const { metrics } = JSON.parse(bench.stdout);
  const rows = fs.readFileSync(path.join(out, 'requests.jsonl'), 'utf8').trimEnd().split('\n').map((l) => JSON.parse(l));
  assert.equal(rows.length, REQUESTS);

  // Every histogram of the log, merged by tag, has the record's n and its percentiles.
  const reader = new HistogramLogReader(fs.readFileSync(path.join(out, 'latencies.hlog'), 'utf8'));
  const merged = new Map();
  let lines = 0, before = 0;
  for (let h = reader.nextIntervalHistogram(); h; h = reader.nextIntervalHistogram()) {
    ++lines;
    assert.ok(h.startTimeStampMsec >= before && h.endTimeStampMsec > h.startTimeStampMsec);
    before = h.startTimeStampMsec;
    if (!merged.has(h.tag)) {
      merged.set(h.tag, build({ highestTrackableValue: 86_400_000_000_000, numberOfSignificantValueDigits: 3, bitBucketSize: 64 }));
    }
    merged.get(h.tag).add(h);
  }
  assert.deepEqual([...merged.keys()].sort(), ['e2e', 'e2e_intended', 'itl', 'tpot', 'ttft', 'ttft_intended']);
  assert.ok(lines >= 12, `${lines} lines of several seconds`);
  assert.ok(Math.abs(before - Date.now()) < 120_000, `the log is of ${new Date(before).toISOString()}`);
  for (const [tag, histogram] of merged) {
    const stats = metrics[`${tag}_ms`];
    assert.equal(histogram.totalCount, stats.n, tag);
    for (const [q, value] of [[50, stats.p50], [90, stats.p90]]) {
      const read = histogram.getValueAtPercentile(q) / 1e6;
      // One sample of rank beside the interpolation, and 0.1 % of bucket.
      const [low, high] = [q - 100 / stats.n, q + 100 / stats.n].map((p) => histogram.getValueAtPercentile(p) / 1e6);
      assert.ok(value >= low * 0.998 && value <= high * 1.002, `${tag} p${q}: ${read} ms in the log, ${value} ms in the record`);
    }
    assert.ok(Math.abs(histogram.maxValue / 1e6 / stats.max - 1) < 0.002, `${tag} max`);
    assert.ok(Math.abs(histogram.mean / 1e6 / stats.mean - 1) < 0.002, `${tag} mean`);
  }

  // The CSV has the keys of the rows and their values.
  const csv = fs.readFileSync(path.join(out, 'requests.csv'), 'utf8').trimEnd().split('\n');
  const keys = csv[0].split(',');
  assert.deepEqual(keys, Object.keys(rows[0]));
  assert.equal(csv.length, REQUESTS + 1);
  csv.slice(1).forEach((line, i) => line.split(',').forEach((cell, k) => {
    const value = rows[i][keys[k]];
    const read = cell === '' ? null : JSON.parse(cell);  // no text of this run holds a quote
    assert.deepEqual(read, value, `${i} ${keys[k]}`);
  }));

  // The trace: one slice a request with its parts inside, counters beside them.
  const trace = JSON.parse(fs.readFileSync(path.join(out, 'trace.json'), 'utf8'));
  assert.deepEqual(trace.otherData, { requests: REQUESTS, requests_drawn: REQUESTS });
  const origin = Math.min(...rows.map((r) => r.t_intended_ns));
  const of = (phase, name) => new Map(trace.traceEvents.filter((e) => e.ph === phase && e.name === name).map((e) => [e.id, e.ts]));
  const begins = of('b', 'decode'), ends = of('e', 'prefill'), whole = of('e', 'request');
  assert.equal(begins.size, REQUESTS);
  for (const row of rows) {
    assert.ok(Math.abs(begins.get(row.index) - (row.t_first_token_ns - origin) / 1000) < 0.01);
    assert.equal(begins.get(row.index), ends.get(row.index));
    assert.ok(whole.get(row.index) >= begins.get(row.index));
  }
  assert.ok(trace.traceEvents.filter((e) => e.ph === 'C' && e.name === 'output tokens/s').length > 10);

  // A file without a folder is refused before anything is sent.
  const refused = await run(prony, ['bench', '--base-url', 'http://127.0.0.1:1', '--save-hdr'], { timeoutMs: 20_000 });
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /--save-hdr: found no --out/);
  console.log(`outputs: ${lines} histograms, ${csv.length - 1} lines, ${trace.traceEvents.length} trace events agree`);
} finally {
  fs.rmSync(out, { recursive: true, force: true });
}
