// Type check and unit tests of the page script: node check.mjs [--modules DIR].
// Exits 77 where the packages are not installed (the build had no npm).
import fs from 'node:fs';
import path from 'node:path';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const here = path.dirname(fileURLToPath(import.meta.url));
const at = process.argv.indexOf('--modules');
const modules = at < 0 ? path.join(here, 'node_modules') : path.resolve(process.argv[at + 1]);
const tsc = path.join(modules, 'typescript', 'bin', 'tsc');
if (!fs.existsSync(tsc)) {
  console.log(`skipped: found no ${tsc}`);
  process.exit(77);
}

// The compiler looks for packages beside the sources only, so it gets a configuration of its own.
const config = path.join(modules, 'tsconfig.check.json');
fs.writeFileSync(config, JSON.stringify({
  extends: path.join(here, 'tsconfig.json'),
  compilerOptions: { noEmit: true, paths: { '*': [path.join(modules, '*')] } },
  include: [path.join(here, 'src')],
}));

const runs = [
  [tsc, '-p', config],
  ['--test', path.join(here, 'test', 'units.test.mjs')],
  ['--test', path.join(here, 'test', 'sweep.test.mjs')],
];
for (const args of runs) {
  const run = spawnSync(process.execPath, args, {
    stdio: 'inherit', timeout: 120_000, env: { ...process.env, PRONY_WEB_MODULES: modules },
  });
  if (run.status !== 0) process.exit(1);
}
