// Draws the figures of a report page. Everything else on the page is HTML that needs no script;
// without this script (or without its data) the page lacks its figures and nothing more.
import { cdfOption, prefersLog } from './cdf';
import { type Chart, type Option, createChart } from './chart';
import { type PageData, readPageData } from './data';
import { mountRequests } from './requests';
import { scatterOption } from './scatter';
import { telemetryHeight, telemetryOption } from './telemetry';
import { type Theme, readTheme } from './theme';
import { timelineHeight, timelineOption } from './timeline';

interface Figure {
  chart: Chart;
  option(theme: Theme): Option;
}

const figures: Figure[] = [];
let log = false;

function draw(figure: Figure, theme: Theme): void {
  figure.chart.setOption(figure.option(theme), { notMerge: true });
}

function redraw(): void {
  const theme = readTheme();
  for (const figure of figures) draw(figure, theme);
}

/** One figure a task, so that the page can be read and scrolled while the rest is drawn. */
function drawOneByOne(next = 0): void {
  const figure = figures[next];
  if (!figure) {
    document.documentElement.dataset['drawn'] = 'all';
    return;
  }
  draw(figure, readTheme());
  setTimeout(() => drawOneByOne(next + 1));
}

function add(element: HTMLElement, option: (theme: Theme) => Option): void {
  figures.push({ chart: createChart(element), option });
}

function addFigures(data: PageData): void {
  for (const element of document.querySelectorAll<HTMLElement>('[data-figure]')) {
    const kind = element.dataset['figure'];
    const { scatter, timeline } = data;
    const cdf = data.cdf.find((series) => `cdf-${series.key}` === kind);
    if (cdf) {
      add(element, (theme) => cdfOption(cdf, log, theme));
    } else if (kind === 'scatter' && scatter) {
      add(element, (theme) => scatterOption(scatter, theme));
    } else if (kind === 'timeline' && timeline) {
      element.style.height = `${timelineHeight(timeline)}px`;
      add(element, (theme) => timelineOption(timeline, theme));
    } else if (kind === 'telemetry' && data.telemetry.length > 0) {
      element.style.height = `${telemetryHeight(data.telemetry)}px`;
      add(element, (theme) => telemetryOption(data.telemetry, timeline, theme));
    }
  }
}

function connectScaleButtons(): void {
  const buttons = document.querySelectorAll<HTMLButtonElement>('[data-scale]');
  const mark = (): void => {
    for (const b of buttons) b.setAttribute('aria-pressed', String((b.dataset['scale'] === 'log') === log));
  };
  for (const button of buttons) {
    button.addEventListener('click', () => {
      log = button.dataset['scale'] === 'log';
      mark();
      redraw();
    });
  }
  mark();
}

function followThePage(): void {
  const resize = (): void => figures.forEach((figure) => figure.chart.resize());
  window.addEventListener('resize', resize);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  // On paper the page has its own width and is always light.
  matchMedia('print').addEventListener('change', () => {
    resize();
    redraw();
  });
}

const data = readPageData();
if (data) {
  document.documentElement.classList.add('figures');
  log = prefersLog(data.cdf);
  addFigures(data);
  connectScaleButtons();
  followThePage();
  const host = document.querySelector<HTMLElement>('[data-requests]');
  const { requests } = data;
  if (host && requests) mountRequests(host, requests);
  setTimeout(() => drawOneByOne());
}
