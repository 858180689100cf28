// What the page finds in its JSON block. Made by src/prony/report/figures.cpp, which alone knows
// the runs; the script draws these numbers and computes none. The same commit makes both sides, so
// there is no version here.

/** Points of an empirical distribution function: at `x[i]` exactly `p[i]` of the n values are <= it. */
export interface Cdf {
  key: string;            // names the colour: "ttft", "tpot", "itl", "e2e"
  label: string;
  n: number;
  x: number[];            // milliseconds, not decreasing
  p: number[];            // in (0, 1], not decreasing
  // The record's percentiles, with their 95 % intervals where it has them.
  marks: { name: string; x: number; p: number; low: number | null; high: number | null }[];
  // Of a comparison: the same latency of other runs, drawn over it.
  over?: { label: string; n: number; x: number[]; p: number[] }[];
}

export interface Scatter {
  n: number;
  x: number[];            // input tokens
  y: number[];            // TTFT, milliseconds
  xLabel: string;
}

export interface Timeline {
  bucketS: number;
  startS: number;         // left edge of the first bucket, seconds from the first scheduled request
  window: [number, number] | null;
  outputTokensPerS: number[];
  inFlightMean: number[];
  inFlightMax: number[];
  failedPerS: number[];
}

/** Single requests, in the page's own encoding: see requests.ts and report/request_list.cpp. */
export interface Requests {
  n: number;              // of the run
  shown: number;
  rows: string;
  statuses: string[];
  events: Record<string, string>;   // by index of the request
  errors: Record<string, string>;
}

/** What was measured beside the load; instants in seconds, as in the timeline. */
export interface Telemetry {
  name: string;
  unit: string;
  source: string;
  t: number[];
  v: number[];
}

export interface PageData {
  cdf: Cdf[];
  scatter: Scatter | null;
  timeline: Timeline | null;
  requests: Requests | null;
  telemetry: Telemetry[];
}

export function readPageData(): PageData | null {
  const block = document.getElementById('prony-data');
  return block?.textContent ? (JSON.parse(block.textContent) as PageData) : null;
}
