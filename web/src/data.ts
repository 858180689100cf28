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
  marks: { name: string; x: number; p: number }[];  // the record's percentiles
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

export interface PageData {
  cdf: Cdf[];
  scatter: Scatter | null;
  timeline: Timeline | null;
}

export function readPageData(): PageData | null {
  const block = document.getElementById('prony-data');
  return block?.textContent ? (JSON.parse(block.textContent) as PageData) : null;
}
