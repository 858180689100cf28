// The run over time: output throughput, requests in flight and, if there are any, failures, each in
// its own strip above one another with one time axis; the measurement window is shaded.
import { type Option, axisStyle, baseOption, pointerStyle, tooltipLines } from './chart';
import type { Timeline } from './data';
import { formatNumber, formatTick } from './format';
import { linearTicks } from './ticks';
import type { Theme } from './theme';

interface Line {
  name: string;
  values: number[];
  color: string;
  area: boolean;
  faint: boolean;
}
interface Strip {
  name: string;
  height: number;
  lines: Line[];
}

const kTop = 32, kGap = 48, kBottom = 44;

function strips(data: Timeline, theme: Theme): Strip[] {
  const flight = theme.color('flight');
  const list: Strip[] = [
    {
      name: 'output tokens / s',
      height: 150,
      lines: [{ name: 'output tokens / s', values: data.outputTokensPerS, color: theme.color('rate'), area: true, faint: false }],
    },
    {
      name: 'requests in flight: mean, and peak (pale)',
      height: 110,
      lines: [
        { name: 'in flight, peak', values: data.inFlightMax, color: flight, area: false, faint: true },
        { name: 'in flight, mean', values: data.inFlightMean, color: flight, area: true, faint: false },
      ],
    },
  ];
  if (data.failedPerS.some((v) => v > 0)) {
    list.push({
      name: 'failed requests / s',
      height: 60,
      lines: [{ name: 'failed / s', values: data.failedPerS, color: theme.color('bad'), area: true, faint: false }],
    });
  }
  return list;
}

export function timelineHeight(data: Timeline): number {
  const failed = data.failedPerS.some((v) => v > 0);
  return kTop + 150 + kGap + 110 + (failed ? kGap + 60 : 0) + kBottom;
}

export function timelineOption(data: Timeline, theme: Theme): Option {
  const list = strips(data, theme);
  const end = data.startS + data.bucketS * data.outputTokensPerS.length;
  const ticks = linearTicks(data.startS, end);
  const grids: Option[] = [], xAxes: Option[] = [], yAxes: Option[] = [], series: Option[] = [];
  let top = kTop;
  list.forEach((strip, index) => {
    const lowest = index === list.length - 1;
    grids.push({ left: 58, right: 18, top, height: strip.height, outerBoundsMode: 'none' });
    top += strip.height + kGap;
    xAxes.push({
      ...axisStyle(theme, false),
      type: 'value',
      gridIndex: index,
      min: data.startS,
      max: end,
      axisTick: { customValues: ticks, lineStyle: { color: theme.rule } },
      axisLabel: { show: lowest, customValues: ticks, color: theme.muted, hideOverlap: true, formatter: formatTick },
      ...(lowest ? { name: 'seconds since the first scheduled request', nameLocation: 'middle', nameGap: 26 } : {}),
      axisPointer: { show: true, ...pointerStyle(theme), label: { show: false } },
    });
    yAxes.push({
      ...axisStyle(theme, true),
      type: 'value',
      gridIndex: index,
      min: 0,
      splitNumber: strip.height > 100 ? 4 : 2,
      name: strip.name,
      nameTextStyle: { color: theme.muted, align: 'left', padding: [0, 0, 0, -50] },
      nameGap: 14,
      axisLabel: { color: theme.muted, formatter: formatTick },
    });
    strip.lines.forEach((line, i) => {
      // A bucket's value holds from its left edge to its right one.
      const points = line.values.map((v, k) => [data.startS + k * data.bucketS, v]);
      points.push([end, line.values[line.values.length - 1] ?? 0]);
      series.push({
        type: 'line',
        name: line.name,
        step: 'end',
        xAxisIndex: index,
        yAxisIndex: index,
        showSymbol: false,
        lineStyle: { color: line.color, width: line.faint ? 1 : 1.75, opacity: line.faint ? 0.5 : 1 },
        itemStyle: { color: line.color },
        ...(line.area ? { areaStyle: { color: line.color, opacity: 0.12 } } : {}),
        emphasis: { disabled: true },
        data: points,
        ...(data.window && i === 0 ? { markArea: windowShade(data.window, index === 0, theme) } : {}),
      });
    });
  });
  return {
    ...baseOption(theme),
    grid: grids,
    xAxis: xAxes,
    yAxis: yAxes,
    axisPointer: { link: [{ xAxisIndex: 'all' }] },
    tooltip: {
      ...(baseOption(theme)['tooltip'] as object),
      trigger: 'axis',
      formatter: (items: { seriesName: string; value: [number, number] }[]) => {
        const at = items[0]?.value[0] ?? 0;
        return tooltipLines([
          `${formatTick(at)} \u2013 ${formatTick(Math.min(end, at + data.bucketS))} s`,
          ...items.map((item) => `${item.seriesName}: ${formatNumber(item.value[1])}`),
        ]);
      },
    },
    series,
  };
}

function windowShade(window: [number, number], labelled: boolean, theme: Theme): Option {
  return {
    silent: true,
    itemStyle: { color: theme.shade },
    label: { show: labelled, position: 'insideTop', color: theme.muted, fontSize: 11, formatter: 'measurement window' },
    data: [[{ xAxis: window[0] }, { xAxis: window[1] }]],
  };
}
