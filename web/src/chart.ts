// The parts of ECharts that the page uses, and what all figures have in common. Tooltips are built
// as DOM nodes with textContent: no string of a record ever becomes markup.
import { LineChart, ScatterChart } from 'echarts/charts';
import { GridComponent, MarkAreaComponent, TooltipComponent } from 'echarts/components';
import { type EChartsCoreOption, init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';
import type { Theme } from './theme';

use([LineChart, ScatterChart, GridComponent, MarkAreaComponent, TooltipComponent, SVGRenderer]);

export type Option = EChartsCoreOption;
export type Chart = ReturnType<typeof init>;

export function createChart(element: HTMLElement): Chart {
  return init(element, null, { renderer: 'svg' });
}

/** A tooltip body: one line per entry, the first emphasised. */
export function tooltipLines(lines: string[]): HTMLElement {
  const box = document.createElement('div');
  lines.forEach((line, i) => {
    const row = document.createElement(i === 0 ? 'strong' : 'div');
    row.textContent = line;
    box.append(row);
  });
  return box;
}

export function baseOption(theme: Theme): Option {
  return {
    animation: false,
    textStyle: { fontFamily: theme.font, color: theme.muted, fontSize: 12 },
    tooltip: {
      confine: true,
      backgroundColor: theme.surface,
      borderColor: theme.rule,
      padding: [6, 10],
      textStyle: { color: theme.ink, fontSize: 12, fontFamily: theme.font },
      extraCssText: 'box-shadow:0 2px 8px rgba(0,0,0,.12)',
    },
  };
}

/** Style shared by every axis: hairlines, muted labels, the name at the end of the axis. */
export function axisStyle(theme: Theme, grid: boolean): Option {
  return {
    axisLine: { show: !grid, lineStyle: { color: theme.rule } },
    axisTick: { show: !grid, lineStyle: { color: theme.rule } },
    axisLabel: { color: theme.muted, hideOverlap: true },
    nameTextStyle: { color: theme.muted },
    splitLine: { show: grid, lineStyle: { color: theme.rule, width: 1 } },
  };
}

export function pointerStyle(theme: Theme): Option {
  return { type: 'line', lineStyle: { color: theme.muted, width: 1, type: 'dashed' } };
}
