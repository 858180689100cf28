// The report page in a real browser without a network: node report.mjs DIR [--shots DIR].
// DIR holds the pages of report_pages.cpp. For each page, at phone and desktop width, in light and
// dark: no request but for the file itself, no message on the console, no violation of the page's
// policy, no sideways scrolling, figures drawn, cards there, and no script but our own has run.
// Exits 77 (skipped) where playwright-core or a browser is not installed.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const args = process.argv.slice(2);
const folder = path.resolve(args[0] ?? '.');
const shots = args[1] === '--shots' ? path.resolve(args[2]) : null;
const browserPath = process.env.PRONY_CHROMIUM ?? '/usr/bin/chromium';

let chromium;
try {
  ({ chromium } = await import('playwright-core'));
} catch {
  console.log('skipped: playwright-core is not installed (npm ci in tests/e2e)');
  process.exit(77);
}
if (!fs.existsSync(browserPath)) {
  console.log(`skipped: found no ${browserPath}`);
  process.exit(77);
}

const kCards = ['ttft', 'tpot', 'itl', 'e2e', 'output_throughput', 'request_throughput', 'goodput', 'failures'];
const kCdfs = ['cdf-ttft', 'cdf-tpot', 'cdf-itl', 'cdf-e2e'];
// The figures each page must have, where this build has figures at all.
const kPages = {
  valid: [...kCdfs, 'scatter', 'timeline', 'telemetry'],
  clean: [...kCdfs, 'scatter', 'timeline'],
  invalid: [...kCdfs, 'scatter', 'timeline'],
  emulated: ['cdf-ttft', 'cdf-tpot', 'cdf-e2e', 'scatter', 'timeline'],  // rows without events
  predicted: [],
  hostile: [...kCdfs, 'scatter', 'timeline', 'telemetry'],
  single: [...kCdfs, 'scatter', 'timeline'],
  all_failed: ['timeline'],
  big: [...kCdfs, 'scatter', 'timeline'],
};
const kViews = [];
for (const width of [390, 1280]) for (const scheme of ['light', 'dark']) kViews.push({ width, scheme });

// Everything inside the page that a check needs, in one go.
function inspect() {
  const box = (e) => e.getBoundingClientRect();
  return {
    title: document.title,
    cards: [...document.querySelectorAll('.card')].map((c) => ({
      key: c.dataset.key, text: c.innerText, tags: [...c.querySelectorAll('.tag')].map((t) => t.innerText),
    })),
    verdict: document.querySelector('.verdict')?.innerText ?? '',
    verdictTop: Math.round(box(document.querySelector('.verdict')).top),
    failures: document.querySelector('#failures .headline')?.innerText ?? '',
    figures: [...document.querySelectorAll('[data-figure]')].map((e) => ({
      name: e.dataset.figure, paths: e.querySelectorAll('svg path').length,
      text: e.querySelectorAll('svg text').length, width: box(e).width, svgWidth: e.querySelector('svg') ? box(e.querySelector('svg')).width : 0,
      label: e.getAttribute('aria-label'),
    })),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    // Content that sticks out of its box without a scroller of its own.
    wide: [...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll, svg, .quiet') &&
      box(e).right > innerWidth + 1).map((e) => e.tagName + '.' + e.className).slice(0, 5),
    scripts: [...document.querySelectorAll('script')].map((s) => s.type),
    images: document.images.length,
    handlers: [...document.querySelectorAll('*')].filter((e) => [...e.attributes].some((a) => /^on/i.test(a.name))).length,
    pwned: window.pwned,
    background: getComputedStyle(document.body).backgroundColor,
    figuresClass: document.documentElement.classList.contains('figures'),
  };
}

let checks = 0;
function check(condition, message) {
  ++checks;
  assert.ok(condition, message);
}

async function openPage(browser, name, view, withFigures) {
  const requests = [], messages = [];
  const file = pathToFileURL(path.join(folder, `${name}.html`)).href;
  const context = await browser.newContext({
    offline: true, colorScheme: view.scheme,
    viewport: { width: view.width, height: view.width < 600 ? 844 : 900 },
  });
  const page = await context.newPage();
  page.on('console', (m) => messages.push(`${m.type()}: ${m.text()}`));
  page.on('pageerror', (e) => messages.push(`error: ${e.message}`));
  await page.route('**/*', (route) => {
    const url = route.request().url();
    if (url === file) return route.continue();
    requests.push(url);
    return route.abort();
  });
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener('securitypolicyviolation', (e) => window.violations.push(`${e.violatedDirective} ${e.blockedURI} ${e.sample}`));
  });
  const begin = process.hrtime.bigint();
  await page.goto(file, { waitUntil: 'load', timeout: 30_000 });
  if (withFigures && kPages[name].length > 0) await page.waitForSelector('html[data-drawn="all"]', { timeout: 30_000 });
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  const openMs = Number(process.hrtime.bigint() - begin) / 1e6;
  return { page, requests, messages, openMs };
}

function checkPage(name, view, seen, withFigures) {
  const where = `${name} at ${view.width} px, ${view.scheme}`;
  assert.deepEqual(seen.cards.map((c) => c.key), kCards, `${where}: cards`);
  check(seen.overflow <= 0, `${where}: scrolls sideways by ${seen.overflow} px`);
  check(seen.wide.length === 0, `${where}: sticks out: ${seen.wide}`);
  check(seen.images === 0 && seen.handlers === 0, `${where}: foreign markup`);
  check(seen.pwned === undefined, `${where}: a hostile string ran (${seen.pwned})`);
  check(seen.scripts.every((type) => ['', 'application/json'].includes(type)) && seen.scripts.length <= 2, `${where}: scripts ${seen.scripts}`);
  const expected = withFigures ? kPages[name] : [];
  assert.deepEqual(seen.figures.map((f) => f.name), expected, `${where}: figures`);
  for (const figure of seen.figures) {
    check(figure.paths >= 5 && figure.text >= 4, `${where}: ${figure.name} is empty (${figure.paths} paths, ${figure.text} texts)`);
    check(Math.abs(figure.width - figure.svgWidth) <= 1, `${where}: ${figure.name} does not fill its box`);
    check(figure.label.length > 10, `${where}: ${figure.name} has no description`);
  }
  const light = view.scheme === 'light';
  const level = Number(seen.background.match(/\d+/)[0]);
  check(light ? level > 200 : level < 60, `${where}: background ${seen.background}`);
}

function checkContent(name, seen) {
  const everyCard = (tag) => seen.cards.every((c) => c.tags.some((t) => t.toLowerCase().includes(tag)));
  if (name === 'valid') {
    check(/^Valid/.test(seen.verdict) && !/invalid/i.test(seen.title), 'valid: verdict');
    check(/n = 1,1\d\d completed/.test(seen.cards[0].text), `valid: no sample size on ${seen.cards[0].text}`);
    check(/95 % interval [\d.,]+ – [\d.,]+/.test(seen.cards[0].text), 'valid: no interval');
    check(seen.cards.every((c) => c.tags.length === 0), 'valid: a measured endpoint needs no tag');
  }
  if (name === 'clean') check(/^0 failures of 60/.test(seen.failures), `clean: ${seen.failures}`);
  if (name === 'invalid') {
    check(/Invalid run/.test(seen.verdict) && /event loop was 96 % busy/.test(seen.verdict), 'invalid: verdict');
    check(seen.verdictTop < 500 && /^INVALID/.test(seen.title) && everyCard('invalid'), 'invalid: not loud');
  }
  if (name === 'emulated') check(everyCard('emulated h100-sxm'), 'emulated: not on every card');
  if (name === 'predicted') check(everyCard('predicted'), 'predicted: not on every card');
  if (name === 'all_failed') check(/No request completed/.test(seen.verdict), `all_failed: ${seen.verdict}`);
  if (name === 'all_failed') check(/^10 failures of 10/.test(seen.failures), `all_failed: ${seen.failures}`);
}

async function checkSwitch(page, name) {
  const path0 = await page.$eval('[data-figure="cdf-e2e"] svg', (svg) => svg.innerHTML);
  await page.click('[data-scale="log"]');
  const log = await page.$eval('[data-figure="cdf-e2e"] svg', (svg) => svg.innerHTML);
  await page.click('[data-scale="linear"]');
  const linear = await page.$eval('[data-figure="cdf-e2e"] svg', (svg) => svg.innerHTML);
  check(log !== linear && (path0 === log || path0 === linear), `${name}: the switch of the scale does nothing`);
}

// The list of requests: few rows in the document whatever the run, every one reachable by keyboard,
// sorted by any column, and the chosen one drawn with its events.
async function checkRequests(page, name, total) {
  const list = page.locator('.req-body');
  await list.scrollIntoViewIfNeeded();
  const read = () => page.evaluate(() => ({
    rows: document.querySelectorAll('.req-space .req-row').length,
    count: Number(document.querySelector('.req-list').getAttribute('aria-rowcount')) - 1,
    chosen: document.querySelector('.req-row[aria-selected="true"]')?.innerText.split('\n') ?? [],
    active: document.querySelector('.req-body').getAttribute('aria-activedescendant'),
    title: document.querySelector('.req-detail h3')?.innerText ?? '',
    ticks: document.querySelectorAll('.req-time .tick').length,
    parts: document.querySelectorAll('.req-time rect').length,
  }));
  const number = (text) => Number((text ?? '').replaceAll(',', ''));
  let seen = await read();
  check(seen.count === total, `${name}: ${seen.count} requests listed, expected ${total}`);
  check(seen.rows > 5 && seen.rows < 60, `${name}: ${seen.rows} rows in the document`);
  check(seen.ticks > 1 && seen.parts >= 2, `${name}: the slowest is drawn with ${seen.ticks} events, ${seen.parts} parts`);
  const slowest = number(seen.chosen[4]);
  await list.focus();
  await page.keyboard.press('ArrowDown');
  seen = await read();
  check(seen.active === 'req-1' && number(seen.chosen[4]) <= slowest, `${name}: arrow down chose ${seen.chosen}`);
  await page.keyboard.press('End');
  seen = await read();
  check(seen.active === `req-${total - 1}` && seen.rows < 60, `${name}: End chose ${seen.active} of ${total}`);
  await page.keyboard.press('Home');
  await page.click('[data-sort="index"]');
  seen = await read();
  check(number(seen.chosen[0]) === 0 && /^Request 0: /.test(seen.title), `${name}: first by index is ${seen.title}`);
  // Scrolling through all of it: the longest pause between two frames.
  const pause = await page.evaluate(async () => {
    const body = document.querySelector('.req-body');
    let longest = 0, before = performance.now();
    for (let i = 0; i < 60; i++) {
      body.scrollTop = (body.scrollHeight * i) / 60;
      await new Promise((done) => requestAnimationFrame(done));
      const now = performance.now();
      longest = Math.max(longest, now - before);
      before = now;
    }
    return longest;
  });
  if (name === 'big') console.log(`big: longest pause between frames while scrolling ${pause.toFixed(0)} ms`);
  check(pause < 250, `${name}: scrolling stutters for ${pause.toFixed(0)} ms`);
  await page.check('.req-bar input');
  seen = await read();
  check(seen.count > 0 && seen.count < total && seen.chosen[2] !== 'ok', `${name}: failed only lists ${seen.count}`);
}

async function checkTooltip(page, name) {
  await page.locator('[data-figure="cdf-ttft"]').scrollIntoViewIfNeeded();
  const area = await page.locator('[data-figure="cdf-ttft"]').boundingBox();
  await page.mouse.move(area.x + area.width * 0.5, area.y + area.height * 0.5);
  await page.waitForTimeout(200);
  const text = await page.$eval('[data-figure="cdf-ttft"]', (e) => e.innerText);
  check(/≤ [\d.,]+ m?s/.test(text) && /% of [\d,]+ values/.test(text), `${name}: tooltip says '${text}'`);
}

// On paper a dark page is light, figures too, and fits the sheet.
async function checkPrint(page, name) {
  await page.emulateMedia({ colorScheme: 'dark', media: 'print' });
  await page.setViewportSize({ width: 700, height: 900 });
  await page.waitForTimeout(300);
  const seen = await page.evaluate(() => ({
    background: getComputedStyle(document.body).backgroundColor,
    muted: getComputedStyle(document.documentElement).getPropertyValue('--muted').trim(),
    fill: document.querySelector('[data-figure="cdf-ttft"] svg text').getAttribute('fill'),
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    svg: document.querySelector('[data-figure="timeline"] svg').getBoundingClientRect().right,
  }));
  check(seen.background === 'rgb(255, 255, 255)' && seen.fill === seen.muted, `${name}: printed dark (${JSON.stringify(seen)})`);
  check(seen.overflow <= 0 && seen.svg <= 700, `${name}: printed wider than the sheet (${JSON.stringify(seen)})`);
}

// Without script the tables are all there and no empty box is.
async function checkWithoutScript(browser) {
  const context = await browser.newContext({ javaScriptEnabled: false, offline: true });
  const page = await context.newPage();
  await page.goto(pathToFileURL(path.join(folder, 'valid.html')).href);
  const rows = await page.locator('table tbody tr').count();
  check(rows > 40, `without script: ${rows} rows of tables`);
  check((await page.locator('.plot:visible, .switch:visible').count()) === 0, 'without script: empty boxes');
  check((await page.locator('.card:visible').count()) === kCards.length, 'without script: cards');
  await context.close();
}

// launch() makes a profile of its own and removes it.
const browser = await chromium.launch({
  executablePath: browserPath, headless: true, timeout: 60_000,
  args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
    '--disable-background-networking', '--disable-component-update', '--disable-sync'],
});
let failure = null;
const bigOpenMs = [];
try {
  const withFigures = fs.readFileSync(path.join(folder, 'valid.html'), 'utf8').includes('id="prony-data"');
  if (!withFigures) console.log('note: this build has no figures; checking the tables alone');
  for (const name of Object.keys(kPages)) {
    for (const view of kViews) {
      const { page, requests, messages, openMs } = await openPage(browser, name, view, withFigures);
      const seen = await page.evaluate(inspect);
      if (shots) {
        fs.mkdirSync(shots, { recursive: true });
        await page.screenshot({ path: path.join(shots, `${name}-${view.width}-${view.scheme}.png`), fullPage: true });
      }
      checkPage(name, view, seen, withFigures);
      checkContent(name, seen);
      if (name === 'big') bigOpenMs.push(openMs);
      if (withFigures && name === 'valid' && view.width === 1280) {
        await checkSwitch(page, name);
        await checkTooltip(page, name);
        await checkRequests(page, name, 1200);
        await checkPrint(page, name);
      }
      if (withFigures && name === 'big' && view.width === 1280 && view.scheme === 'light') {
        await checkRequests(page, name, 100_000);
      }
      assert.deepEqual(await page.evaluate(() => window.violations), [], `${name}: policy violations`);
      assert.deepEqual(requests, [], `${name}: requests to the network`);
      assert.deepEqual(messages, [], `${name}: console`);
      await page.context().close();
    }
  }
  await checkWithoutScript(browser);
  // The best of four: what the page takes, not what else this machine was doing.
  const best = Math.min(...bigOpenMs);
  console.log(`big: 100,000 requests, opened and drawn in ${best.toFixed(0)} ms`);
  check(best < 2000, `big: opened in ${best.toFixed(0)} ms, expected under 2,000`);
} catch (error) {
  failure = error;
} finally {
  await browser.close();
}
if (failure) {
  console.error(failure.message);
  process.exit(1);
}
console.log(`report: ${checks} checks on ${Object.keys(kPages).length} pages passed`);
