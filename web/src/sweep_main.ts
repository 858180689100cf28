// Draws the figures of a sweep's page: curves, response surface, contours. Its maps and tables are
// HTML that needs no script. Two menus choose the metric and, where other axes leave several
// planes, the plane.
import { type Chart, type Option, createChart } from './chart';
import { alongOption, kneeOption } from './sweep_curves';
import { type Series, type SweepData, readSweepData, seriesOf } from './sweep_data';
import { contourOption, createSurface, hasWebGl, surfaceOption } from './sweep_surface';
import { type Theme, readTheme } from './theme';

interface Figure {
  chart: Chart;
  option(theme: Theme): Option;
}

const figures: Figure[] = [];
let metric = 0, plane = 0;

function redraw(): void {
  const theme = readTheme();
  for (const figure of figures) {
    try {
      figure.chart.setOption(figure.option(theme), { notMerge: true });
    } catch (error) {
      console.error(error);  // one that a browser cannot draw must not cost the others
    }
  }
  document.documentElement.dataset['drawn'] = 'all';
}

function menu(name: string, labels: string[], chosen: number, choose: (index: number) => void): void {
  const select = document.querySelector<HTMLSelectElement>(`select[data-menu="${name}"]`);
  if (!select) return;
  labels.forEach((label, i) => select.add(new Option_(label, String(i), i === chosen, i === chosen)));
  select.addEventListener('change', () => {
    choose(Number(select.value));
    redraw();
  });
}
const Option_ = window.Option;  // the DOM's, not the chart library's

function addFigures(data: SweepData, planes: Series[]): void {
  const along = data.loadAxis ?? data.columnAxis;
  const throughput = data.metrics.findIndex((m) => m.key === 'output_throughput');
  for (const element of document.querySelectorAll<HTMLElement>('[data-figure]')) {
    const kind = element.dataset['figure'];
    if (kind === 'along' && along !== null) {
      figures.push({ chart: createChart(element), option: (theme) => alongOption(data, along, metric, theme) });
    } else if (kind === 'knee' && data.loadAxis !== null) {
      const axis = data.loadAxis;
      const latency = (): number => (data.metrics[metric]!.unit === 'ms' ? metric : data.metrics.findIndex((m) => m.key === 'e2e_p50_ms'));
      figures.push({ chart: createChart(element), option: (theme) => kneeOption(data, axis, latency(), throughput, theme) });
    } else if (kind === 'contour' && planes.length > 0) {
      figures.push({ chart: createChart(element), option: (theme) => contourOption(data, planes[plane]!, metric, theme) });
    } else if (kind === 'surface' && planes.length > 0) {
      if (!hasWebGl()) {
        element.textContent = 'This browser has no WebGL; the contours show the same values.';
        continue;
      }
      figures.push({ chart: createSurface(element), option: (theme) => surfaceOption(data, planes[plane]!, metric, theme) });
    }
  }
}

const data = readSweepData();
if (data) {
  document.documentElement.classList.add('figures');
  const known = data.metrics.map((_, i) => data.points.some((p) => p.metrics[i]));
  metric = Math.max(0, known.indexOf(true));
  const planes = data.columnAxis !== null && data.rowAxis !== null ? seriesOf(data, [data.columnAxis, data.rowAxis]) : [];
  const shown = data.metrics.map((m, i) => ({ m, i })).filter(({ i }) => known[i]);
  menu('metric', shown.map(({ m }) => `${m.label}, ${m.unit}`), 0, (index) => { metric = shown[index]?.i ?? 0; });
  menu('plane', planes.map((s) => s.name || 'all'), 0, (index) => { plane = index; });
  addFigures(data, planes);
  window.addEventListener('resize', () => figures.forEach((figure) => figure.chart.resize()));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  setTimeout(redraw);
}
