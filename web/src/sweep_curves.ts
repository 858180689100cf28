// Curves of a sweep: a metric along the axis of load, and latency against throughput, which bends
// up at the knee. Bars are the intervals of the values; a knee is a large ring.
import { LegendComponent } from 'echarts/components';
import { CustomChart } from 'echarts/charts';
import { use } from 'echarts/core';
import { type Option, axisStyle, baseOption, tooltipLines } from './chart';
import { formatNumber, formatTick } from './format';
import { type Series, type SweepData, type SweepPoint, type SweepValue, seriesOf } from './sweep_data';
import type { Theme } from './theme';

use([CustomChart, LegendComponent]);

const kColors = ['ttft', 'tpot', 'e2e', 'itl', 'rate', 'flight'];

interface BarApi {
  value(dimension: number): number;
  coord(point: [number, number]): [number, number];
}

/** One line with its interval bars; x of a point may be an index or a value. */
function line(name: string, color: string, theme: Theme, points: { x: number; y: SweepValue; knee: boolean }[]): Option[] {
  const known = points.filter((p) => p.y !== null) as { x: number; y: [number, number | null, number | null]; knee: boolean }[];
  const bars = known.filter((p) => p.y[1] !== null && p.y[2] !== null).map((p) => [p.x, p.y[1], p.y[2]]);
  return [
    {
      type: 'line',
      name,
      data: known.map((p) => ({
        value: [p.x, p.y[0]],
        symbol: 'circle',
        symbolSize: p.knee ? 13 : 6,
        itemStyle: p.knee ? { color: theme.surface, borderColor: color, borderWidth: 3 } : { color },
      })),
      lineStyle: { color, width: 2 },
      itemStyle: { color },
      emphasis: { disabled: true },
    },
    {
      type: 'custom',
      name,
      silent: true,
      data: bars,
      encode: { x: 0, y: [1, 2] },
      renderItem: (_: unknown, api: BarApi) => {
        const [x, low] = api.coord([api.value(0), api.value(1)]);
        const [, high] = api.coord([api.value(0), api.value(2)]);
        const stroke = { stroke: color, lineWidth: 1.5, opacity: 0.6 };
        const piece = (x1: number, y1: number, x2: number, y2: number): object =>
          ({ type: 'line', shape: { x1, y1, x2, y2 }, style: stroke });
        return {
          type: 'group',
          children: [piece(x, low, x, high), piece(x - 4, low, x + 4, low), piece(x - 4, high, x + 4, high)],
        };
      },
    },
  ];
}

function frame(theme: Theme, series: Series[]): Option {
  return {
    ...baseOption(theme),
    legend: {
      show: series.length > 1,
      type: 'scroll',
      bottom: 0,
      data: series.map((s) => s.name),
      textStyle: { color: theme.muted, fontSize: 12 },
    },
    grid: { left: 62, right: 18, top: 30, bottom: series.length > 1 ? 70 : 44, outerBoundsMode: 'none' },
  };
}

const nameStyle = (theme: Theme): Option => ({ color: theme.muted, align: 'left', padding: [0, 0, 0, -50] });

function valueText(value: SweepValue, unit: string): string {
  if (!value) return 'not known';
  const bounds = value[1] !== null && value[2] !== null ? ` [${formatNumber(value[1])}, ${formatNumber(value[2])}]` : '';
  return `${formatNumber(value[0])}${bounds} ${unit}`;
}

/** `metric` along `axis`, each value of the axis as far from the next as any other. */
export function alongOption(data: SweepData, axis: number, metric: number, theme: Theme): Option {
  const all = seriesOf(data, [axis]);
  const about = data.metrics[metric]!, values = data.axes[axis]!.values;
  const knees = new Set(data.knees.map((i) => data.points[i]));
  return {
    ...frame(theme, all),
    xAxis: {
      ...axisStyle(theme, false), type: 'category', data: values, boundaryGap: true,
      name: data.axes[axis]!.name, nameLocation: 'middle', nameGap: 26,
      axisLabel: { color: theme.muted },
    },
    yAxis: {
      ...axisStyle(theme, true), type: 'value', min: 0, name: `${about.label}, ${about.unit}`,
      nameTextStyle: nameStyle(theme), axisLabel: { color: theme.muted, formatter: formatTick },
    },
    tooltip: {
      ...(baseOption(theme)['tooltip'] as object),
      trigger: 'item',
      formatter: (item: { seriesName: string; value: [number, number] }) => {
        const point = all.find((s) => s.name === item.seriesName)?.points.find((p) => p.at[axis] === item.value[0]);
        return tooltipLines([
          item.seriesName || about.label,
          `${data.axes[axis]!.name} ${values[item.value[0]]}: ${valueText(point?.metrics[metric] ?? null, about.unit)}`,
        ]);
      },
    },
    series: all.flatMap((s, i) => line(s.name, theme.color(kColors[i % kColors.length]!), theme,
      s.points.map((p) => ({ x: p.at[axis] ?? 0, y: p.metrics[metric] ?? null, knee: knees.has(p) })))),
  };
}

/** `metric` against throughput, a curve for each combination of the axes that are no load. */
export function kneeOption(data: SweepData, axis: number, metric: number, throughput: number, theme: Theme): Option {
  const all = seriesOf(data, [axis]);
  const x = data.metrics[throughput]!, y = data.metrics[metric]!;
  const knees = new Set(data.knees.map((i) => data.points[i]));
  const at = (p: SweepPoint): number | null => p.metrics[throughput]?.[0] ?? null;
  return {
    ...frame(theme, all),
    xAxis: {
      ...axisStyle(theme, false), type: 'value', min: 0, name: `${x.label}, ${x.unit}`, nameLocation: 'middle', nameGap: 26,
      axisLabel: { color: theme.muted, hideOverlap: true, formatter: formatTick },
    },
    yAxis: {
      ...axisStyle(theme, true), type: 'value', min: 0, name: `${y.label}, ${y.unit}`,
      nameTextStyle: nameStyle(theme), axisLabel: { color: theme.muted, formatter: formatTick },
    },
    tooltip: {
      ...(baseOption(theme)['tooltip'] as object),
      trigger: 'item',
      formatter: (item: { seriesName: string; value: [number, number] }) => {
        const point = all.find((s) => s.name === item.seriesName)?.points.find((p) => at(p) === item.value[0]);
        if (!point) return '';
        return tooltipLines([
          `${item.seriesName} ${data.axes[axis]!.name} ${data.axes[axis]!.values[point.at[axis] ?? 0]}`.trim(),
          `${x.label}: ${valueText(point.metrics[throughput] ?? null, x.unit)}`,
          `${y.label}: ${valueText(point.metrics[metric] ?? null, y.unit)}`,
          ...(knees.has(point) ? ['knee'] : []),
        ]);
      },
    },
    series: all.flatMap((s, i) => line(s.name, theme.color(kColors[i % kColors.length]!), theme,
      s.points.filter((p) => at(p) !== null)
        .map((p) => ({ x: at(p) ?? 0, y: p.metrics[metric] ?? null, knee: knees.has(p) })))),
  };
}
