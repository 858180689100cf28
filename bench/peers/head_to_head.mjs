// Prony and its peers against one stamped server on this host, judged by the server's stamps.
//   node head_to_head.mjs PATH/TO/prony [--streams N] [--tokens N]
// Peers that are not installed are named and skipped. Prints one line a client and load.
import { spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { joinFiles } from './join.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const prony = process.argv[2];
if (!prony) {
  console.error('usage: node head_to_head.mjs PATH/TO/prony [--streams N] [--tokens N]');
  process.exit(2);
}
const option = (name, fallback) => {
  const at = process.argv.indexOf(name);
  return at < 0 ? fallback : Number(process.argv[at + 1]);
};
const streams = option('--streams', 1000), tokens = option('--tokens', 100);
const scratch = mkdtempSync(path.join(tmpdir(), 'prony-peers-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));

const server = path.join(scratch, 'stamped_server');
const built = spawnSync(process.env.CC ?? 'cc', ['-O2', '-o', server, path.join(here, 'stamped_server.c')], { stdio: 'inherit' });
if (built.status !== 0) {
  console.log('skipped: no C compiler (cc) to build stamped_server.c');
  process.exit(77);
}
const python = '/usr/bin/python3';  // Debian's, which has its packages; another python3 may stand before it
const has = (module) => spawnSync(python, ['-c', `import ${module}`]).status === 0;

const bench = (url, out, load) => [prony, ['bench', '--base-url', url, '--endpoint-type', 'openai-chat', '--model', 'stamped',
  '--input-len', '64', '--output-len', String(tokens), '--save-detailed', '--on-invalid', 'warn', '--out', path.dirname(out), ...load]];
const CLIENTS = [
  { name: 'prony', rows: 'requests.jsonl',
    burst: (url, out) => bench(url, out, ['--request-rate', 'inf', '--num-prompts', String(streams)]),
    poisson: (url, out) => bench(url, out, ['--request-rate', String(streams), '--num-prompts', String(1.5 * streams)]) },
  { name: 'aiohttp', rows: 'rows.jsonl', missing: has('aiohttp') ? '' : 'python3-aiohttp is not installed',
    burst: (url, out) => [python, [path.join(here, 'aiohttp_client.py'), '--base-url', url, '--requests', String(streams),
      '--concurrency', String(streams), '--output-len', String(tokens), '--out', out]],
    poisson: (url, out) => [python, [path.join(here, 'aiohttp_client.py'), '--base-url', url, '--requests', String(1.5 * streams),
      '--rate', String(streams), '--output-len', String(tokens), '--out', out]] },
];

async function play(client, load) {
  const folder = mkdtempSync(path.join(scratch, 'run-')), stamps = path.join(folder, 'stamps.jsonl');
  const child = spawn(server, ['--stamps', stamps, '--ttft-us', '50000', '--itl-us', '10000'], { stdio: ['ignore', 'ignore', 'pipe'] });
  const exited = new Promise((resolve) => child.once('exit', resolve));
  const url = await new Promise((resolve) => child.stderr.on('data', (data) => resolve(/http:\S+/.exec(data)[0])));
  const out = path.join(folder, client.rows);
  const [program, args] = client[load](url, out);
  const peer = spawn(program, args, { stdio: 'ignore' });
  const timer = setTimeout(() => peer.kill('SIGKILL'), 180_000);
  await new Promise((resolve) => peer.once('exit', resolve));
  clearTimeout(timer);
  child.kill('SIGTERM');
  await exited;
  return joinFiles(stamps, out);
}

const text = (value) => (value === null || value === undefined ? '-' : value.toFixed(2)).padStart(9);
console.log(`${streams} streams of 50 ms, 10 ms, ${tokens} tokens; ${cpus().length} cores, load average ${loadavg()[0].toFixed(2)}; ms`);
console.log('load      client        ok   TTFT mean      p99  first-token error mean      p99  gap p99 server   client  send lag p99');
for (const load of ['burst', 'poisson']) {
  for (const client of CLIENTS) {
    if (client.missing) {
      console.log(`${load.padEnd(9)} ${client.name.padEnd(10)} skipped: ${client.missing}`);
      continue;
    }
    const joined = await play(client, load);
    console.log(`${load.padEnd(9)} ${client.name.padEnd(10)}${String(joined.ok).padStart(6)}   ` +
      `${text(joined.ttft?.mean)}${text(joined.ttft?.p99)}              ${text(joined.first_token_error?.mean)}` +
      `${text(joined.first_token_error?.p99)}       ${text(joined.server_gap?.p99)}${text(joined.client_gap?.p99)}     ${text(joined.send_lag?.p99)}`);
  }
}
