// Lines of equal value through a grid (marching squares, linear between neighbours): where latency
// is 100 ms, where throughput is 10/s. Coordinates are grid indices, so that each value of an axis
// takes the same room whether the axis doubles or counts. Squares with a missing corner are left
// out: nothing is drawn where nothing was measured.
// Source: Lorensen & Cline, SIGGRAPH 1987, in two dimensions; the middle decides a saddle.

export type Point = [number, number];  // column, row

/** Segments joined into lines. */
export function isolines(grid: (number | null)[][], level: number): Point[][] {
  const segments: [Point, Point][] = [];
  for (let row = 0; row + 1 < grid.length; ++row) {
    const width = grid[row]?.length ?? 0;
    for (let column = 0; column + 1 < width; ++column) segments.push(...square(grid, row, column, level));
  }
  return join(segments);
}

function square(grid: (number | null)[][], row: number, column: number, level: number): [Point, Point][] {
  const at = (r: number, c: number): number | null => grid[r]?.[c] ?? null;
  // Corners in a circle: left top, right top, right bottom, left bottom.
  const corners: Point[] = [[column, row], [column + 1, row], [column + 1, row + 1], [column, row + 1]];
  const values = corners.map(([c, r]) => at(r, c));
  if (values.some((v) => v === null)) return [];
  const z = values as number[];
  const crossings: Point[] = [];
  for (let i = 0; i < 4; ++i) {
    const j = (i + 1) % 4;
    const a = z[i] as number, b = z[j] as number;
    if ((a >= level) === (b >= level)) continue;
    const t = (level - a) / (b - a);
    const [p, q] = [corners[i] as Point, corners[j] as Point];
    crossings.push([p[0] + t * (q[0] - p[0]), p[1] + t * (q[1] - p[1])]);
  }
  if (crossings.length === 2) return [[crossings[0] as Point, crossings[1] as Point]];
  if (crossings.length !== 4) return [];
  // A saddle: crossings are on the edges 01, 12, 23, 30. If the middle is on the side of corner 0,
  // corners 1 and 3 are cut off, else 0 and 2.
  const [top, right, bottom, left] = crossings as [Point, Point, Point, Point];
  const middle = (z[0]! + z[1]! + z[2]! + z[3]!) / 4;
  return (middle >= level) === (z[0]! >= level) ? [[top, right], [bottom, left]] : [[left, top], [right, bottom]];
}

function join(segments: [Point, Point][]): Point[][] {
  const key = (p: Point): string => `${p[0].toFixed(9)},${p[1].toFixed(9)}`;
  const ends = new Map<string, Point[]>();  // of lines still open
  const lines = new Set<Point[]>();
  const drop = (line: Point[], end: Point): void => {
    if (ends.get(key(end)) === line) ends.delete(key(end));
  };
  for (const [a, b] of segments) {
    if (key(a) === key(b)) continue;
    const before = ends.get(key(a)), after = ends.get(key(b));
    let line: Point[];
    if (before && before === after) {  // closes a ring
      drop(before, a);
      drop(before, b);
      if (key(before[0] as Point) === key(a)) before.unshift(b);
      else before.push(b);
      continue;
    }
    if (before) {
      drop(before, a);
      if (key(before[0] as Point) === key(a)) before.reverse();
      before.push(b);
      line = before;
    } else {
      line = [a, b];
      lines.add(line);
      ends.set(key(a), line);
    }
    if (after) {
      drop(after, b);
      if (key(after[0] as Point) !== key(b)) after.reverse();
      line.push(...after.slice(1));
      lines.delete(after);
      ends.set(key(line[line.length - 1] as Point), line);
    } else {
      ends.set(key(b), line);
    }
    ends.set(key(line[0] as Point), line);
  }
  return [...lines];
}

/** About `count` round levels within the values of a grid, on a logarithmic scale if all are > 0. */
export function levelsOf(grid: (number | null)[][], ticks: (low: number, high: number, log: boolean) => number[]): number[] {
  const values = grid.flat().filter((v): v is number => v !== null);
  if (values.length === 0) return [];
  const low = Math.min(...values), high = Math.max(...values);
  if (!(high > low)) return [];
  return ticks(low, high, low > 0 && high / low > 8).filter((v) => v > low && v < high);
}
