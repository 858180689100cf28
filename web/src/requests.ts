// The list of single requests and the timeline of the chosen one. Only the rows in sight are in the
// document, so 10^5 requests scroll like ten. Keyboard: the arrow keys, Page Up and Down, Home and
// End move the choice; the column heads sort. All text goes in as textContent.
import type { Requests } from './data';
import { formatMs, formatNumber } from './format';

export interface Columns {
  n: number;
  index: Float64Array;
  startS: Float64Array;    // intended start
  queueMs: Float64Array;   // NaN where the request never came so far, here and below
  ttftMs: Float64Array;
  e2eMs: Float64Array;
  endMs: Float64Array;     // last stamp, from the intended start
  input: Float64Array;
  output: Float64Array;
  tpotMs: Float64Array;
  status: Uint8Array;
}

function bytesOf(base64: string): Uint8Array {
  const text = atob(base64);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

/** Base 128 digits, least first; the numbers are below 2^53. */
function reader(base64: string): { more(): boolean; next(): number } {
  const bytes = bytesOf(base64);
  let at = 0;
  return {
    more: () => at < bytes.length,
    next: () => {
      let value = 0;
      for (let scale = 1; ; scale *= 128) {
        const byte = bytes[at++] ?? 0;
        value += (byte & 0x7f) * scale;
        if (byte < 0x80) return value;
      }
    },
  };
}

export function decodeRequests(data: Requests): Columns {
  const make = (): Float64Array => new Float64Array(data.shown);
  const out: Columns = {
    n: data.shown, index: make(), startS: make(), queueMs: make(), ttftMs: make(), e2eMs: make(),
    endMs: make(), input: make(), output: make(), tpotMs: make(), status: new Uint8Array(data.shown),
  };
  const { next } = reader(data.rows);
  const known = (): number => {
    const value = next();
    return value === 0 ? NaN : (value - 1) / 1000;
  };
  let index = 0, startUs = 0;
  for (let i = 0; i < data.shown; i++) {
    index += next();
    out.index[i] = index;
    const step = next();
    startUs += step % 2 === 0 ? step / 2 : -(step + 1) / 2;
    out.startS[i] = startUs / 1e6;
    out.queueMs[i] = known();
    out.ttftMs[i] = known();
    out.e2eMs[i] = known();
    out.endMs[i] = known();
    out.input[i] = next();
    out.output[i] = next();
    out.status[i] = next();
    const tokens = out.output[i] ?? 0;
    out.tpotMs[i] = tokens > 1 ? ((out.e2eMs[i] ?? NaN) - (out.ttftMs[i] ?? NaN)) / (tokens - 1) : NaN;
  }
  return out;
}

/** Instants of token events, ms from the intended start. */
export function decodeEvents(base64: string): number[] {
  const from = reader(base64);
  const out: number[] = [];
  for (let at = 0; from.more();) out.push((at += from.next()) / 1000);
  return out;
}

export type Key = 'index' | 'startS' | 'queueMs' | 'ttftMs' | 'tpotMs' | 'e2eMs' | 'input' | 'output' | 'status';

/** Positions in the order asked for; what is unknown comes last either way. */
export function sorted(columns: Columns, key: Key, down: boolean, only: (i: number) => boolean): Uint32Array {
  const values = columns[key];
  const at: number[] = [];
  for (let i = 0; i < columns.n; i++) if (only(i)) at.push(i);
  const order = Uint32Array.from(at);
  const sign = down ? -1 : 1;
  return order.sort((a, b) => {
    const x = values[a] ?? NaN, y = values[b] ?? NaN;
    if (Number.isNaN(x) || Number.isNaN(y)) return Number(Number.isNaN(x)) - Number(Number.isNaN(y)) || a - b;
    return sign * (x - y) || a - b;
  });
}

const kRowHeight = 26;
const kHeads: { key: Key; label: string; unit: string }[] = [
  { key: 'index', label: 'request', unit: '' },
  { key: 'startS', label: 'start', unit: 's' },
  { key: 'status', label: 'status', unit: '' },
  { key: 'queueMs', label: 'queued', unit: 'ms' },
  { key: 'ttftMs', label: 'TTFT', unit: 'ms' },
  { key: 'tpotMs', label: 'ms/token', unit: '' },
  { key: 'e2eMs', label: 'E2E', unit: 'ms' },
  { key: 'input', label: 'in', unit: 'tok' },
  { key: 'output', label: 'out', unit: 'tok' },
];

function element<K extends keyof HTMLElementTagNameMap>(name: K, className = '', text = ''): HTMLElementTagNameMap[K] {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}

function svg(name: string, attributes: Record<string, string | number>): SVGElement {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

const shown = (ms: number): string => (Number.isNaN(ms) ? '\u2014' : formatNumber(ms));

export function mountRequests(host: HTMLElement, data: Requests): void {
  const columns = decodeRequests(data);
  const list = element('div', 'req-list scroll');
  const body = element('div', 'req-body');
  const space = element('div', 'req-space');
  const detail = element('div', 'req-detail panel');
  detail.setAttribute('aria-live', 'polite');
  let key: Key = 'ttftMs', down = true, failedOnly = false;
  let order: Uint32Array = new Uint32Array();
  let chosen = 0;  // place in the order

  const bar = element('div', 'req-bar');
  const label = element('label');
  const box = element('input');
  box.type = 'checkbox';
  label.append(box, ' failed only');
  const count = element('span', 'note');
  bar.append(label, count);

  const head = element('div', 'req-row req-head');
  head.setAttribute('role', 'row');
  for (const { key: own, label: text, unit } of kHeads) {
    const cell = element('div');
    cell.setAttribute('role', 'columnheader');
    const button = element('button', '', unit ? `${text}, ${unit}` : text);
    button.type = 'button';
    button.dataset['sort'] = own;
    button.addEventListener('click', () => {
      down = key === own ? !down : own !== 'index' && own !== 'startS';
      key = own;
      reorder();
    });
    cell.append(button);
    head.append(cell);
  }
  list.setAttribute('role', 'grid');
  list.setAttribute('aria-label', 'requests');
  body.tabIndex = 0;
  body.setAttribute('role', 'rowgroup');
  body.append(space);
  list.append(head, body);
  host.append(bar, list, detail);

  const texts = (i: number): string[] => [
    formatCount(columns.index[i] ?? 0),
    (columns.startS[i] ?? 0).toFixed(2),
    data.statuses[columns.status[i] ?? 0] ?? '',
    shown(columns.queueMs[i] ?? NaN),
    shown(columns.ttftMs[i] ?? NaN),
    shown(columns.tpotMs[i] ?? NaN),
    shown(columns.e2eMs[i] ?? NaN),
    formatCount(columns.input[i] ?? 0),
    formatCount(columns.output[i] ?? 0),
  ];

  function draw(): void {
    const from = Math.max(0, Math.floor(body.scrollTop / kRowHeight) - 4);
    const to = Math.min(order.length, Math.ceil((body.scrollTop + body.clientHeight) / kRowHeight) + 4);
    const rows: HTMLElement[] = [];
    for (let place = from; place < to; place++) {
      const i = order[place] ?? 0;
      const row = element('div', 'req-row');
      row.id = `req-${place}`;
      row.setAttribute('role', 'row');
      row.setAttribute('aria-rowindex', String(place + 2));
      row.setAttribute('aria-selected', String(place === chosen));
      if (columns.status[i] !== 0) row.classList.add('bad');
      row.style.top = `${place * kRowHeight}px`;
      for (const text of texts(i)) {
        const cell = element('div', '', text);
        cell.setAttribute('role', 'gridcell');
        row.append(cell);
      }
      row.addEventListener('click', () => choose(place));
      rows.push(row);
    }
    space.replaceChildren(...rows);
    if (order.length > 0) body.setAttribute('aria-activedescendant', `req-${chosen}`);
  }

  function reorder(): void {
    order = sorted(columns, key, down, (i) => !failedOnly || columns.status[i] !== 0);
    list.setAttribute('aria-rowcount', String(order.length + 1));
    space.style.height = `${order.length * kRowHeight}px`;
    for (const button of head.querySelectorAll<HTMLButtonElement>('button')) {
      const mine = button.dataset['sort'] === key;
      button.parentElement?.setAttribute('aria-sort', mine ? (down ? 'descending' : 'ascending') : 'none');
    }
    count.textContent = `${order.length.toLocaleString('en-US')} of ${data.n.toLocaleString('en-US')} requests`;
    body.scrollTop = 0;
    choose(0);
  }

  function choose(place: number): void {
    chosen = Math.max(0, Math.min(order.length - 1, place));
    const top = chosen * kRowHeight;
    if (top < body.scrollTop) body.scrollTop = top;
    if (top + kRowHeight > body.scrollTop + body.clientHeight) body.scrollTop = top + kRowHeight - body.clientHeight;
    draw();
    const i = order[chosen];
    detail.replaceChildren(...(i === undefined ? [element('p', 'note', 'No such request.')] : detailOf(i)));
  }

  function detailOf(i: number): Element[] {
    const index = columns.index[i] ?? 0;
    const status = data.statuses[columns.status[i] ?? 0] ?? '';
    const out: Element[] = [element('h3', '', `Request ${formatCount(index)}: ${status}`)];
    const error = data.errors[String(index)];
    if (error) out.push(element('p', 'bad', error));
    const queue = columns.queueMs[i] ?? NaN, end = columns.endMs[i] ?? NaN;
    const first = queue + (columns.ttftMs[i] ?? NaN), last = queue + (columns.e2eMs[i] ?? NaN);
    const encoded = data.events[String(index)];
    const events = encoded === undefined ? [] : decodeEvents(encoded);
    out.push(timelineOf(Math.max(end || 0, last || 0, 1e-3), queue, first, last, end, events));
    const words = [`queued ${shown(queue)} ms`, `first token after ${shown(columns.ttftMs[i] ?? NaN)} ms`];
    if (!Number.isNaN(last)) words.push(`last after ${formatMs(columns.e2eMs[i] ?? 0)}`);
    words.push(`${formatCount(columns.output[i] ?? 0)} tokens`);
    let longest = 0;
    for (let k = 1; k < events.length; k++) longest = Math.max(longest, (events[k] ?? 0) - (events[k - 1] ?? 0));
    if (events.length > 1) words.push(`${formatCount(events.length)} events, longest gap ${formatMs(longest)}`);
    else words.push('its token events are not in this page');
    out.push(element('p', 'note', words.join(' \u00b7 ')));
    return out;
  }

  function timelineOf(span: number, queue: number, first: number, last: number, end: number, events: number[]): Element {
    const width = 1000, high = 46;
    const x = (ms: number): number => (ms / span) * width;
    const picture = svg('svg', { viewBox: `0 0 ${width} ${high}`, preserveAspectRatio: 'none', role: 'img', class: 'req-time' });
    picture.setAttribute('aria-label', 'queue, prefill, decode and the arrival of each token event');
    const part = (from: number, to: number, name: string): void => {
      if (Number.isNaN(from) || Number.isNaN(to) || to < from) return;
      const rect = svg('rect', { x: x(from), y: 4, width: Math.max(x(to) - x(from), 0.5), height: 16, class: `part-${name}` });
      const title = svg('title', {});
      title.textContent = `${name}: ${formatMs(to - from)}`;
      rect.append(title);
      picture.append(rect);
    };
    part(0, Number.isNaN(queue) ? end : queue, 'queue');
    part(queue, Number.isNaN(first) ? end : first, 'prefill');
    part(first, last, 'decode');
    for (const at of events) {
      picture.append(svg('line', { x1: x(at), x2: x(at), y1: 24, y2: high - 2, class: 'tick', 'vector-effect': 'non-scaling-stroke' }));
    }
    return picture;
  }

  let waiting = false;
  body.addEventListener('scroll', () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      draw();
    });
  });
  body.addEventListener('keydown', (event) => {
    const page = Math.max(1, Math.floor(body.clientHeight / kRowHeight) - 1);
    const moves: Record<string, number> = {
      ArrowDown: chosen + 1, ArrowUp: chosen - 1, PageDown: chosen + page, PageUp: chosen - page,
      Home: 0, End: order.length - 1,
    };
    const to = moves[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(to);
  });
  box.addEventListener('change', () => {
    failedOnly = box.checked;
    reorder();
  });
  reorder();
}

function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}
