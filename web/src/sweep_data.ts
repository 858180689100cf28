// What the page of a sweep finds in its JSON block. Made by src/prony/report/sweep_figures.cpp; the
// script draws these numbers and computes none but the lines of equal value between them.

export interface SweepAxis {
  name: string;
  values: string[];
  target: boolean;
}

export interface SweepMetric {
  key: string;
  label: string;
  unit: string;
}

/** Value, lower and upper bound; null: not known. */
export type SweepValue = [number, number | null, number | null] | null;

export interface SweepPoint {
  at: number[];           // index of its value, an axis
  overloaded: boolean;
  metrics: SweepValue[];  // beside SweepData.metrics; all null for a point without a valid run
}

export interface SweepData {
  axes: SweepAxis[];
  metrics: SweepMetric[];
  points: SweepPoint[];
  knees: number[];          // indices into points
  loadAxis: number | null;  // curves go along it
  columnAxis: number | null;
  rowAxis: number | null;   // with the one above: the plane of the surface
}

/** Points that differ along the given axes only, in the order of the first of them. */
export interface Series {
  name: string;
  points: SweepPoint[];
}

export function seriesOf(data: SweepData, along: number[]): Series[] {
  const found = new Map<string, Series>();
  for (const point of data.points) {
    const name = data.axes
      .map((axis, i) => (axis.target ? `${axis.values[point.at[i] ?? 0]}` : `${axis.name} ${axis.values[point.at[i] ?? 0]}`))
      .filter((_, i) => !along.includes(i)).join(', ');
    const series = found.get(name) ?? { name, points: [] };
    series.points.push(point);
    found.set(name, series);
  }
  const first = along[0] ?? 0;
  for (const series of found.values()) series.points.sort((a, b) => (a.at[first] ?? 0) - (b.at[first] ?? 0));
  return [...found.values()];
}

/** The values of two axes as a grid of one metric, [row][column]; null where there is none. */
export function gridOf(data: SweepData, series: Series, columnAxis: number, rowAxis: number, metric: number): (number | null)[][] {
  const rows = data.axes[rowAxis]?.values.length ?? 0, columns = data.axes[columnAxis]?.values.length ?? 0;
  const grid: (number | null)[][] = Array.from({ length: rows }, () => Array<number | null>(columns).fill(null));
  for (const point of series.points) {
    const row = grid[point.at[rowAxis] ?? -1];
    if (row) row[point.at[columnAxis] ?? -1] = point.metrics[metric]?.[0] ?? null;
  }
  return grid;
}

export function readSweepData(): SweepData | null {
  const block = document.getElementById('prony-data');
  return block?.textContent ? (JSON.parse(block.textContent) as SweepData) : null;
}
