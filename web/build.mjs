// Bundles the figures of each page into one script: node build.mjs --out DIR [--modules DIR].
// Writes DIR/report.js and DIR/sweep.js (classic scripts, ASCII, safe inside <script>), and beside
// each the licence of every package whose code is in it (licenses.txt, sweep_licenses.txt): found
// from the bundler's own list of inputs, so a new import cannot be forgotten. DIR may lie anywhere; --modules names the
// node_modules folder if it is not beside this file.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));

function flag(name, fallback) {
  const at = process.argv.indexOf(name);
  if (at < 0) return fallback;
  const value = process.argv[at + 1];
  if (value === undefined) throw new Error(`${name}: found nothing, expected a folder`);
  return path.resolve(value);
}

// The text a recipient of the bundle must get: licence files, then the notice.
function licenseOf(folder) {
  const about = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
  const names = fs.readdirSync(folder).filter((n) => /^(licen[sc]e|copying|copyright|notice)/i.test(n))
    .filter((n) => fs.statSync(path.join(folder, n)).isFile()).sort();
  if (!names.some((n) => /^(licen[sc]e|copying)/i.test(n))) {
    throw new Error(`${about.name}: found no licence file, expected one beside package.json`);
  }
  const texts = names.map((n) => fs.readFileSync(path.join(folder, n), 'utf8').trim());
  // Licences for parts that a package took over from elsewhere lie in a folder of their own.
  const extra = path.join(folder, 'licenses');
  if (fs.existsSync(extra)) {
    for (const n of fs.readdirSync(extra).sort()) {
      texts.push(`[${n}]\n${fs.readFileSync(path.join(extra, n), 'utf8').trim()}`);
    }
  }
  const title = `${about.name} ${about.version} (${about.license ?? "licence below"})`;
  return `${title}\n${'='.repeat(title.length)}\n\n${texts.join('\n\n')}\n`;
}

const out = flag('--out', path.join(here, 'dist'));
const modules = flag('--modules', path.join(here, 'node_modules'));
const { build } = createRequire(path.join(modules, 'x.js'))('esbuild');

// echarts-gl imports parts of ECharts without the ".js" that their packages' export maps ask for.
const withExtension = {
  name: 'with-extension',
  setup(builder) {
    builder.onResolve({ filter: /^(echarts|zrender)\/lib\// }, (found) =>
      (found.path.endsWith('.js') ? undefined : { path: path.join(modules, `${found.path}.js`) }));
  },
};

// Its renderer makes functions of texts like "width * 1.0 / 4", which the page's policy forbids:
// factors and divisors, evaluated from left to right, are all it needs.
const withoutEval = {
  name: 'without-eval',
  setup(builder) {
    builder.onLoad({ filter: /claygl[\\/]src[\\/]createCompositor\.js$/ }, (found) => {
      const text = fs.readFileSync(found.path, 'utf8');
      const made = text.replace(/new Function\([^;]*;/, `(width, height, dpr) => {
        const names = { width, height, dpr: dpr ?? 1 };
        const words = exprRes[1].trim().split(/\\s*([*/])\\s*/);
        let value = 1;
        for (let i = 0; i < words.length; i += 2) {
          const word = words[i] in names ? names[words[i]] : Number(words[i]);
          value = words[i - 1] === '/' ? value / word : value * word;
        }
        return value;
      };`);
      if (made === text) throw new Error('claygl: found no new Function, expected one to replace');
      return { contents: made, loader: 'js' };
    });
  },
};

async function bundle(entry, scriptName, licensesName) {
  const result = await build({
    entryPoints: [path.join(here, 'src', entry)],
    bundle: true,
    minify: true,
    format: 'iife',
    target: 'es2020',
    charset: 'ascii',
    legalComments: 'none',  // collected whole into licenses.txt instead
    nodePaths: [modules],
    plugins: [withExtension, withoutEval],
    absWorkingDir: here,
    metafile: true,
    write: false,
    outfile: path.join(out, scriptName),
    logLevel: 'warning',
  });
  const script = result.outputFiles[0].text;
  // Either would end or distort the inline script element; the hash in the page's policy and the
  // parser must see the same bytes.
  for (const bad of ['</script', '<!--', '\r', '\0']) {
    if (script.toLowerCase().includes(bad)) {
      throw new Error(`${scriptName}: found ${JSON.stringify(bad)}, which cannot stand in an inline script`);
    }
  }

  const packages = new Set();
  for (const input of Object.keys(result.metafile.inputs)) {
    const match = path.resolve(here, input).match(/^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/);
    if (match) packages.add(match[1]);
  }
  fs.mkdirSync(out, { recursive: true });
  fs.writeFileSync(path.join(out, scriptName), script);
  fs.writeFileSync(path.join(out, licensesName), [...packages].sort().map(licenseOf).join('\n\n'));
}

await bundle('main.ts', 'report.js', 'licenses.txt');
await bundle('sweep_main.ts', 'sweep.js', 'sweep_licenses.txt');
