// Time to first token against input length, one dot a completed request. Prefill work grows with
// the input, so a slope is expected; a cloud above it is queueing.
import { type Option, axisStyle, baseOption, tooltipLines } from './chart';
import type { Scatter } from './data';
import { formatMs, formatTick } from './format';
import type { Theme } from './theme';

export function scatterOption(data: Scatter, theme: Theme): Option {
  const color = theme.color('ttft');
  return {
    ...baseOption(theme),
    grid: { left: 58, right: 18, top: 30, bottom: 44, outerBoundsMode: 'none' },
    xAxis: {
      ...axisStyle(theme, false),
      type: 'value',
      min: 0,
      name: data.xLabel,
      nameLocation: 'middle',
      nameGap: 26,
      axisLabel: { color: theme.muted, hideOverlap: true, formatter: formatTick },
    },
    yAxis: {
      ...axisStyle(theme, true),
      type: 'value',
      min: 0,
      name: 'TTFT, ms',
      nameTextStyle: { color: theme.muted, align: 'left', padding: [0, 0, 0, -50] },
      axisLabel: { color: theme.muted, formatter: formatTick },
    },
    tooltip: {
      ...(baseOption(theme)['tooltip'] as object),
      trigger: 'item',
      formatter: (item: { value: [number, number] }) =>
        tooltipLines([`TTFT ${formatMs(item.value[1])}`, `${formatTick(item.value[0])} input tokens`]),
    },
    series: [
      {
        type: 'scatter',
        // Many dots lie on each other: smaller and paler, so that density shows.
        symbolSize: data.x.length > 600 ? 4 : 6,
        itemStyle: { color, opacity: data.x.length > 600 ? 0.35 : 0.55 },
        emphasis: { scale: 1.6, itemStyle: { opacity: 1 } },
        data: data.x.map((x, i) => [x, data.y[i]]),
      },
    ],
  };
}
