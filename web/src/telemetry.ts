// What was measured beside the load: server counters, GPUs, the host. One strip a unit and source,
// on the time axis of the run.
import { type Option, axisStyle, baseOption, pointerStyle, tooltipLines } from './chart';
import type { Telemetry, Timeline } from './data';
import { formatNumber, formatTick } from './format';
import { linearTicks } from './ticks';
import type { Theme } from './theme';

const kTop = 32, kGap = 48, kBottom = 44, kHeight = 90;
const kColors = ['rate', 'ttft', 'tpot', 'itl', 'e2e', 'flight'];

interface Strip {
  name: string;
  series: Telemetry[];
}

/** Series of one unit and source share a strip, six at most. */
export function telemetryStrips(all: Telemetry[]): Strip[] {
  const strips: Strip[] = [];
  for (const series of all) {
    const name = series.unit ? `${series.source}: ${series.unit}` : series.source;
    const open = strips.find((strip) => strip.name === name && strip.series.length < kColors.length);
    if (open) open.series.push(series);
    else strips.push({ name, series: [series] });
  }
  return strips;
}

export function telemetryHeight(all: Telemetry[]): number {
  const strips = telemetryStrips(all).length;
  return kTop + strips * kHeight + (strips - 1) * kGap + kBottom;
}

export function telemetryOption(all: Telemetry[], run: Timeline | null, theme: Theme): Option {
  const strips = telemetryStrips(all);
  let begin = 0, end = run ? run.startS + run.bucketS * run.outputTokensPerS.length : 0;
  for (const { t } of all) {
    begin = Math.min(begin, t[0] ?? 0);
    end = Math.max(end, t[t.length - 1] ?? 0);
  }
  const ticks = linearTicks(begin, end);
  return {
    ...baseOption(theme),
    grid: strips.map((_, i) => ({ left: 58, right: 18, top: kTop + i * (kHeight + kGap), height: kHeight, outerBoundsMode: 'none' })),
    xAxis: strips.map((_, i) => ({
      ...axisStyle(theme, false),
      type: 'value',
      gridIndex: i,
      min: begin,
      max: end,
      axisTick: { customValues: ticks, lineStyle: { color: theme.rule } },
      axisLabel: { show: i === strips.length - 1, customValues: ticks, color: theme.muted, hideOverlap: true, formatter: formatTick },
      ...(i === strips.length - 1 ? { name: 'seconds since the first scheduled request', nameLocation: 'middle', nameGap: 26 } : {}),
      axisPointer: { show: true, ...pointerStyle(theme), label: { show: false } },
    })),
    yAxis: strips.map((strip, i) => ({
      ...axisStyle(theme, true),
      type: 'value',
      gridIndex: i,
      scale: true,
      splitNumber: 2,
      name: strip.name,
      nameTextStyle: { color: theme.muted, align: 'left', padding: [0, 0, 0, -50] },
      nameGap: 14,
      axisLabel: { color: theme.muted, formatter: formatTick },
    })),
    axisPointer: { link: [{ xAxisIndex: 'all' }] },
    tooltip: {
      ...(baseOption(theme)['tooltip'] as object),
      trigger: 'axis',
      formatter: (items: { seriesName: string; value: [number, number] }[]) =>
        tooltipLines([`${formatTick(items[0]?.value[0] ?? 0)} s`, ...items.map((item) => `${item.seriesName}: ${formatNumber(item.value[1])}`)]),
    },
    series: strips.flatMap((strip, i) => strip.series.map((series, k) => ({
      type: 'line',
      name: series.name,
      xAxisIndex: i,
      yAxisIndex: i,
      showSymbol: false,
      lineStyle: { color: theme.color(kColors[k] ?? 'rate'), width: 1.5 },
      itemStyle: { color: theme.color(kColors[k] ?? 'rate') },
      emphasis: { disabled: true },
      data: series.t.map((t, n) => [t, series.v[n]]),
    }))),
  };
}
