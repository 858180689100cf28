// Latency distribution functions, one small figure a metric. Drawn as steps that rise at each shown
// value: where points were left out, the curve lies below the true one, never above it.
import { type Option, axisStyle, baseOption, pointerStyle, tooltipLines } from './chart';
import type { Cdf } from './data';
import { formatMs, formatPercent, formatTick } from './format';
import { linearTicks, logTicks } from './ticks';
import type { Theme } from './theme';

const kMarkShare = 0.72;   // of the width: the last mark stands no further right
const kSmallestMs = 1e-3;  // a logarithmic axis has no zero; 1 us is below what the clock tells

/** A heavy tail squeezes everything else against the left edge of a linear axis. */
export function prefersLog(series: Cdf[]): boolean {
  return series.some((s) => {
    const median = s.x[s.p.findIndex((p) => p >= 0.5)] ?? 0;
    return median > 0 && (s.x[s.x.length - 1] ?? 0) > 12 * median;
  });
}

export function cdfOption(data: Cdf, log: boolean, theme: Theme): Option {
  const scale = (x: number): number => (log ? Math.log10(Math.max(x, kSmallestMs)) : x);
  const unscale = (v: number): number => (log ? 10 ** v : v);
  const over = data.over ?? [];
  const first = Math.max(Math.min(data.x[0] ?? 0, ...over.map((o) => o.x[0] ?? Infinity)), log ? kSmallestMs : 0);
  const last = Math.max(data.x[data.x.length - 1] ?? 1, first, ...over.map((o) => o.x[o.x.length - 1] ?? first));
  const low = log ? first / 1.15 : 0;
  const mark = data.marks.reduce((most, m) => Math.max(most, m.x, m.high ?? 0), low);
  // Room for the words beside the last mark.
  const room = unscale(scale(low) + (scale(Math.max(mark, low)) - scale(low)) / kMarkShare);
  const high = last > 0 ? Math.max(last * (log ? 1.15 : 1.04), room) : 1;
  const ticks = (log ? logTicks(low, high) : linearTicks(low, high)).map(scale);
  const color = theme.color(data.key);
  const axis = axisStyle(theme, false);

  const points = data.x.map((x, i) => [scale(x), data.p[i]]);
  points.unshift([scale(Math.max(data.x[0] ?? 0, log ? kSmallestMs : 0)), 0]);
  return {
    ...baseOption(theme),
    grid: { left: 44, right: 14, top: 12, bottom: 44, outerBoundsMode: 'none' },
    xAxis: {
      ...axis,
      type: 'value',
      min: scale(low),
      max: scale(high),
      name: log ? 'ms, logarithmic' : 'ms',
      nameLocation: 'middle',
      nameGap: 26,
      axisTick: { ...(axis['axisTick'] as object), customValues: ticks },
      axisLabel: {
        ...(axis['axisLabel'] as object),
        customValues: ticks,
        formatter: (v: number) => formatTick(unscale(v)),
      },
    },
    yAxis: {
      ...axisStyle(theme, true),
      type: 'value',
      min: 0,
      max: 1,
      interval: 0.25,
      axisLabel: { color: theme.muted, formatter: (v: number) => `${v * 100} %` },
    },
    tooltip: {
      ...(baseOption(theme)['tooltip'] as object),
      trigger: 'axis',
      axisPointer: pointerStyle(theme),
      formatter: (items: { seriesId?: string; value: [number, number] }[]) => {
        const hit = items.find((item) => item.seriesId === 'cdf');
        if (!hit) return '';
        const others = items.flatMap((item) => {
          const other = over[Number(/^over-(\d+)$/.exec(item.seriesId ?? '')?.[1] ?? -1)];
          return other ? [`${other.label} \u2264 ${formatMs(unscale(item.value[0]))}: ${formatPercent(item.value[1])}`] : [];
        });
        return tooltipLines([
          `${data.label} \u2264 ${formatMs(unscale(hit.value[0]))}`,
          `${formatPercent(hit.value[1])} of ${data.n.toLocaleString('en-US')} values`,
          ...others,
        ]);
      },
    },
    series: [
      {
        id: 'cdf',
        type: 'line',
        step: 'end',
        data: points,
        showSymbol: false,
        lineStyle: { color, width: 2 },
        itemStyle: { color },
        emphasis: { disabled: true },
      },
      ...over.map((other, i) => ({
        id: `over-${i}`,
        type: 'line',
        step: 'end',
        data: other.x.map((x, k) => [scale(x), other.p[k]]),
        showSymbol: false,
        lineStyle: { color: i === 0 ? theme.ink : theme.muted, width: 1.5, type: i === 0 ? 'dashed' : 'dotted' },
        emphasis: { disabled: true },
      })),
      // 95 % intervals of the percentiles: a bar through the mark.
      ...data.marks.filter((m) => m.low !== null && m.high !== null).map((m) => ({
        id: `interval-${m.name}`,
        type: 'line',
        silent: true,
        symbol: 'rect',
        symbolSize: [1.5, 9],
        showAllSymbol: true,
        lineStyle: { color, width: 5, opacity: 0.3 },
        itemStyle: { color },
        emphasis: { disabled: true },
        data: [[scale(m.low ?? m.x), m.p], [scale(m.high ?? m.x), m.p]],
      })),
      {
        id: 'marks',
        type: 'scatter',
        silent: true,
        symbolSize: 7,
        itemStyle: { color: theme.surface, borderColor: color, borderWidth: 2 },
        // Right of the curve and below the point nothing is ever drawn; p90 keeps clear of p99.
        data: data.marks.map((m) => ({
          value: [scale(m.x), m.p],
          label: {
            show: true,
            position: 'right',
            offset: [0, m.p < 0.95 ? 9 : 6],
            color: theme.ink,
            backgroundColor: theme.surface,
            padding: [1, 2],
            fontSize: 11,
            formatter: `${m.name}  ${formatMs(m.x)}`,
          },
        })),
      },
    ],
  };
}
