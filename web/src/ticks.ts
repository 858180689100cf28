// Ticks of a logarithmic axis. The chart library puts ticks at powers of the base only, which
// leaves none at all on an axis from 38 to 92 ms; here an axis of any width gets some, at round values.

/** Ascending round values within [low, high]; requires 0 < low < high. */
export function logTicks(low: number, high: number): number[] {
  const decades = Math.log10(high / low);
  const steps = decades > 4 ? [1] : decades > 2.2 ? [1, 3] : [1, 2, 5];
  const stride = Math.ceil(decades / 8);
  const ticks: number[] = [];
  const first = Math.floor(Math.log10(low) / stride) * stride;  // a stride passes through 1
  for (let e = first; e <= Math.ceil(Math.log10(high)); e += stride) {
    for (const step of steps) {
      const tick = Number(`${step}e${e}`);
      if (tick >= low && tick <= high) ticks.push(tick);
    }
  }
  return ticks.length >= 3 ? ticks : linearTicks(low, high);
}

/** Two to six ascending round values within [low, high]; requires low < high. */
export function linearTicks(low: number, high: number): number[] {
  const raw = (high - low) / 5;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((m) => m * power >= raw) ?? 10) * power;
  const ticks: number[] = [];
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9);
  for (let i = first; i <= last; ++i) ticks.push(Number((i * step).toPrecision(12)));
  return ticks;
}
