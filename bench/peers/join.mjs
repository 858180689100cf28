// Joins what a client says it received with what a server says it wrote, by X-Request-Id, event by
// event, on one host's CLOCK_MONOTONIC.
//   node join.mjs STAMPS ROWS [--json]
// STAMPS: one JSON object a request, {id, writes: [[before_ns, after_ns, tokens], ...]} (stamped_server)
// or {id, writes: [[t_ns, tokens], ...]} (prony mock). ROWS: requests.jsonl of `prony bench
// --save-detailed`, or of aiohttp_client.py.
// The error of an event is the client's stamp - the end of the system call that wrote it: a little
// below zero where the packet was there before the call was over. A gap is between two events of one
// request.
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

// CLOCK_MONOTONIC passes 2^53 ns after 104 days of uptime; from then on doubles are 2 ns apart.
const readLines = (file) => readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));

export function quantile(values, q) {
  if (values.length === 0) return null;
  const sorted = Float64Array.from(values).sort();
  const at = q * (sorted.length - 1), low = Math.floor(at);
  return sorted[low] + (at - low) * ((sorted[low + 1] ?? sorted[low]) - sorted[low]);
}
export const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

const spread = (values) => (values.length === 0 ? null : {
  n: values.length, mean: mean(values), p01: quantile(values, 0.01), p50: quantile(values, 0.5),
  p99: quantile(values, 0.99), max: quantile(values, 1),
});

/** Everything in ms. Events that the client did not get, or got unasked, are counted, not guessed. */
export function join(stampLines, rows) {
  const written = new Map(stampLines.map((line) => [line.id, line.writes.filter((write) => write.at(-1) > 0)]));
  const first = [], all = [], gaps = { server: [], client: [] }, lag = [], read = [], ttft = [];
  let matched = 0, unknown = 0, missing = 0, extra = 0, merged = 0;
  const sends = [];
  for (const row of rows) {
    if (row.t_send_ns) {
      lag.push((row.t_send_ns - row.t_intended_ns) / 1e6);
      sends.push([row.t_intended_ns, row.t_send_ns]);
    }
    merged += row.merged_events ?? 0;
    const writes = written.get(row.id);
    if (!writes) {
      ++unknown;
      continue;
    }
    ++matched;
    const events = row.events ?? [];
    missing += Math.max(0, writes.length - events.length);
    extra += Math.max(0, events.length - writes.length);
    const n = Math.min(events.length, writes.length);
    for (let i = 0; i < n; ++i) {
      const after = writes[i].length === 3 ? writes[i][1] : writes[i][0];
      const error = (events[i][0] - after) / 1e6;
      all.push(error);
      read.push((events[i][1] - events[i][0]) / 1e6);
      if (i === 0) {
        first.push(error);
        ttft.push((events[0][0] - row.t_send_ns) / 1e6);
      } else {
        const before = writes[i - 1].length === 3 ? writes[i - 1][1] : writes[i - 1][0];
        gaps.server.push((after - before) / 1e6);
        gaps.client.push((events[i][0] - events[i - 1][0]) / 1e6);
      }
    }
  }
  // Achieved against drawn: the span of the sends against the span of the intentions.
  sends.sort((a, b) => a[0] - b[0]);
  const drawn = sends.length > 1 ? (sends.at(-1)[0] - sends[0][0]) : 0;
  const rate_error = drawn > 0 ? (sends.at(-1)[1] - sends[0][1]) / drawn - 1 : null;
  return {
    requests: rows.length, ok: rows.filter((row) => row.status === 'ok').length, matched, unknown, missing,
    extra, merged, ttft: spread(ttft), first_token_error: spread(first), event_error: spread(all),
    server_gap: spread(gaps.server), client_gap: spread(gaps.client), send_lag: spread(lag),
    read_lag: spread(read), rate_error,
  };
}

export const joinFiles = (stamps, rows) => join(readLines(stamps), readLines(rows));

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const [stamps, rows, flag] = process.argv.slice(2);
  if (!rows) {
    console.error('usage: node join.mjs STAMPS ROWS [--json]');
    process.exit(2);
  }
  const result = joinFiles(stamps, rows);
  if (flag === '--json') {
    console.log(JSON.stringify(result));
  } else {
    const { requests, ok, matched, unknown, missing, extra, merged, rate_error } = result;
    console.log(`${requests} requests, ${ok} ok, ${matched} joined, ${unknown} unknown to the server; ` +
                `events: ${missing} missing, ${extra} extra, ${merged} merged`);
    console.log(`achieved against drawn schedule: ${rate_error === null ? '-' : (100 * rate_error).toFixed(4)} %`);
    console.log('[ms]                      n      mean       p01       p50       p99       max');
    for (const name of ['ttft', 'first_token_error', 'event_error', 'server_gap', 'client_gap', 'send_lag', 'read_lag']) {
      const s = result[name];
      if (!s) continue;
      console.log(name.padEnd(18) + String(s.n).padStart(9) +
                  [s.mean, s.p01, s.p50, s.p99, s.max].map((value) => value.toFixed(3).padStart(10)).join(''));
    }
  }
}
