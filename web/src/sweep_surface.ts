// The response surface of a sweep over two axes: in three dimensions (WebGL), and as contours,
// which need none and can be read off. Axes count values, not units: 1, 2, 4, ... are equally far.
import { SurfaceChart } from 'echarts-gl/charts';
import { Grid3DComponent } from 'echarts-gl/components';
import { VisualMapContinuousComponent } from 'echarts/components';
import { init, use } from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';
import { type Chart, type Option, axisStyle, baseOption, tooltipLines } from './chart';
import { formatNumber, formatTick } from './format';
import { isolines, levelsOf } from './sweep_contour';
import { type Series, type SweepData, gridOf } from './sweep_data';
import type { Theme } from './theme';
import { linearTicks, logTicks } from './ticks';

use([VisualMapContinuousComponent, CanvasRenderer]);
use(SurfaceChart);
use(Grid3DComponent);

const kRamp = ['#2b63b5', '#62bf9b', '#e5b567', '#b3261e'];

export function hasWebGl(): boolean {
  try {
    return document.createElement('canvas').getContext('webgl') !== null;
  } catch {
    return false;
  }
}

export function createSurface(element: HTMLElement): Chart {
  return init(element, null, { renderer: 'canvas' });
}

function plane(data: SweepData): { columns: string[]; rows: string[]; columnName: string; rowName: string } {
  const column = data.axes[data.columnAxis!]!, row = data.axes[data.rowAxis!]!;
  return { columns: column.values, rows: row.values, columnName: column.name, rowName: row.name };
}

export function surfaceOption(data: SweepData, series: Series, metric: number, theme: Theme): Option {
  const { columns, rows, columnName, rowName } = plane(data);
  const about = data.metrics[metric]!;
  const grid = gridOf(data, series, data.columnAxis!, data.rowAxis!, metric);
  const values = grid.flat().filter((v): v is number => v !== null);
  const label = { color: theme.muted, fontSize: 11 };
  const axis = (name: string, names: string[]): Option => ({
    type: 'category', data: names, name, nameTextStyle: { color: theme.muted, fontSize: 12 },
    axisLabel: { textStyle: label }, axisLine: { lineStyle: { color: theme.muted } },
  });
  return {
    animation: false,
    visualMap: {
      show: false, dimension: 2, min: Math.min(...values, 0), max: Math.max(...values, 1), inRange: { color: kRamp },
    },
    xAxis3D: axis(columnName, columns),
    yAxis3D: axis(rowName, rows),
    zAxis3D: {
      type: 'value', name: about.unit, nameTextStyle: { color: theme.muted, fontSize: 12 },
      axisLabel: { textStyle: label, formatter: formatTick }, axisLine: { lineStyle: { color: theme.muted } },
    },
    grid3D: {
      boxHeight: 70, boxDepth: 100, splitLine: { lineStyle: { color: theme.rule } },
      axisPointer: { show: false }, light: { main: { intensity: 1 }, ambient: { intensity: 0.5 } },
      viewControl: { projection: 'orthographic', alpha: 28, beta: 40, orthographicSize: 150, autoRotate: false },
    },
    series: [{
      type: 'surface',
      shading: 'color',
      dataShape: [rows.length, columns.length],
      wireframe: { show: true, lineStyle: { color: theme.ink, opacity: 0.35, width: 1 } },
      data: grid.flatMap((row, r) => row.map((z, c) => [c, r, z === null ? '-' : z])),
    }],
  };
}

export function contourOption(data: SweepData, series: Series, metric: number, theme: Theme): Option {
  const { columns, rows, columnName, rowName } = plane(data);
  const about = data.metrics[metric]!;
  const grid = gridOf(data, series, data.columnAxis!, data.rowAxis!, metric);
  const levels = levelsOf(grid, (low, high, log) => (log ? logTicks(low, high) : linearTicks(low, high)));
  const tick = (names: string[]) => (v: number): string => (Number.isInteger(v) ? names[v] ?? '' : '');
  const dots = grid.flatMap((row, r) => row.map((z, c) => ({ z, c, r }))).filter((d) => d.z !== null);
  const color = (share: number): string => {
    const i = Math.min(kRamp.length - 1, Math.floor(share * kRamp.length));
    return kRamp[i]!;
  };
  return {
    ...baseOption(theme),
    grid: { left: 62, right: 22, top: 30, bottom: 44, outerBoundsMode: 'none' },
    xAxis: {
      ...axisStyle(theme, false), type: 'value', min: 0, max: columns.length - 1, interval: 1, name: columnName,
      nameLocation: 'middle', nameGap: 26, axisLabel: { color: theme.muted, formatter: tick(columns) },
    },
    yAxis: {
      ...axisStyle(theme, true), type: 'value', min: 0, max: rows.length - 1, interval: 1, name: rowName,
      nameTextStyle: { color: theme.muted, align: 'left', padding: [0, 0, 0, -50] },
      axisLabel: { color: theme.muted, formatter: tick(rows) },
    },
    tooltip: {
      ...(baseOption(theme)['tooltip'] as object),
      trigger: 'item',
      formatter: (item: { value: [number, number, number] }) => tooltipLines([
        `${about.label} ${formatNumber(item.value[2])} ${about.unit}`,
        `${columnName} ${columns[item.value[0]]}, ${rowName} ${rows[item.value[1]]}`,
      ]),
    },
    series: [
      ...levels.flatMap((level, i) => isolines(grid, level).map((points, k) => ({
        type: 'line', silent: true, showSymbol: false, emphasis: { disabled: true }, data: points,
        lineStyle: { color: color(i / Math.max(1, levels.length - 1)), width: 2 },
        ...(k === 0 ? {
          endLabel: {
            show: true, formatter: formatTick(level), color: theme.ink, backgroundColor: theme.surface,
            padding: [1, 3], fontSize: 11, offset: [-34, 0],
          },
        } : {}),
      }))),
      {
        type: 'scatter', symbolSize: 6, itemStyle: { color: theme.muted },
        data: dots.map((d) => [d.c, d.r, d.z]),
      },
    ],
  };
}
