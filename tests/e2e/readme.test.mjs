// Every `$ prony ...` line of README.md runs and exits 0; every `$ ./run ...` line names a command
// that the script knows; every file it links to exists. Usage: node readme.test.mjs PATH/TO/prony.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './process.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const readme = readFileSync(join(root, 'README.md'), 'utf8');
const help = await run(join(root, 'run'), ['help']);
assert.equal(help.code, 0);

const commands = [...readme.matchAll(/^\$ (.+)$/gm)].map((match) => match[1].split(/\s+/));
assert.ok(commands.length >= 5, 'README.md has lost its commands');
for (const [program, ...args] of commands) {
  if (program === './run') {
    assert.match(help.stdout, new RegExp(`^  ${args[0]} `, 'm'), `./run ${args[0]} is not in ./run help`);
    continue;
  }
  assert.equal(program, 'prony');
  const result = await run(process.argv[2], args, { cwd: root });
  assert.equal(result.code, 0, `prony ${args.join(' ')}: ${result.stderr}`);
  assert.ok(result.stdout.length > 100, `prony ${args.join(' ')} printed next to nothing`);
  console.log(`ok   prony ${args.join(' ')}`);
}
for (const [, target] of readme.matchAll(/\]\(([^)#]+)\)/g)) {
  assert.ok(existsSync(join(root, target)), `README.md links to ${target}, which does not exist`);
}
const listed = [...readme.matchAll(/^\| `prony (\w+)`/gm)].map((match) => match[1]).sort();
const usage = await run(process.argv[2], ['--help']);
const known = [...usage.stdout.matchAll(/^  (\w+) +\S/gm)].map((match) => match[1]).sort();
assert.deepEqual(listed, known, 'the table of commands differs from prony --help');
