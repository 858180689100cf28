// Numbers as the page writes them: the same rules as src/prony/report/format.cpp.

/** Three to four significant digits, thousands grouped: 0.412, 4.12, 41.2, 412, 4,120. */
export function formatNumber(value: number): string {
  const size = Math.abs(value);
  const digits = size === 0 || size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3;
  return group(value.toFixed(digits));
}

/** As formatNumber, without trailing zeros: for ticks of an axis, which are round already. */
export function formatTick(value: number): string {
  return group(String(Number(value.toPrecision(6))));
}

export function formatMs(ms: number): string {
  return ms >= 10000 ? `${formatNumber(ms / 1000)} s` : `${formatNumber(ms)} ms`;
}

export function formatPercent(fraction: number): string {
  const percent = fraction * 100;
  return `${Number(percent.toFixed(percent > 99 ? 2 : 1))} %`;
}

function group(text: string): string {
  const [whole = '', rest] = text.split('.');
  const grouped = whole.replace(/\B(?=(\d{3})+$)/g, ',');
  return rest === undefined ? grouped : `${grouped}.${rest}`;
}
