// Bundles the report's figures into one script: node build.mjs --out DIR [--modules DIR].
// Writes DIR/report.js (one classic script, ASCII, safe inside <script>) and DIR/licenses.txt (the
// licence of every package whose code is in the bundle: found from the bundler's own list of
// inputs, so a new import cannot be forgotten). DIR may lie anywhere; --modules names the
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
  const title = `${about.name} ${about.version} (${about.license})`;
  return `${title}\n${'='.repeat(title.length)}\n\n${texts.join('\n\n')}\n`;
}

const out = flag('--out', path.join(here, 'dist'));
const modules = flag('--modules', path.join(here, 'node_modules'));
const { buildSync } = createRequire(path.join(modules, 'x.js'))('esbuild');

const result = buildSync({
  entryPoints: [path.join(here, 'src', 'main.ts')],
  bundle: true,
  minify: true,
  format: 'iife',
  target: 'es2020',
  charset: 'ascii',
  legalComments: 'none',  // collected whole into licenses.txt instead
  nodePaths: [modules],
  absWorkingDir: here,
  metafile: true,
  write: false,
  outfile: path.join(out, 'report.js'),
  logLevel: 'warning',
});
const script = result.outputFiles[0].text;
// Either would end or distort the inline script element; the hash in the page's policy and the
// parser must see the same bytes.
for (const bad of ['</script', '<!--', '\r', '\0']) {
  if (script.toLowerCase().includes(bad)) {
    throw new Error(`report.js: found ${JSON.stringify(bad)}, which cannot stand in an inline script`);
  }
}

const packages = new Set();
for (const input of Object.keys(result.metafile.inputs)) {
  const match = path.resolve(here, input).match(/^(.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+)[\\/]/);
  if (match) packages.add(match[1]);
}
fs.mkdirSync(out, { recursive: true });
fs.writeFileSync(path.join(out, 'report.js'), script);
fs.writeFileSync(path.join(out, 'licenses.txt'), [...packages].sort().map(licenseOf).join('\n\n'));
