// The stamped server of bench/peers, which shares no code with Prony: built once a test run with the
// host's C compiler, started, stopped, and its stamps joined with what a bench has received.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { cpus, loadavg, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { joinFiles } from '../../bench/peers/join.mjs';
import { run, startServer } from './process.mjs';

const peers = path.join(path.dirname(fileURLToPath(import.meta.url)), '..', '..', 'bench', 'peers');
export const scratch = mkdtempSync(path.join(tmpdir(), 'prony-stamped-'));
process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));

/** More runnable threads than cores: other work makes this host late, whoever measures. */
export const busy = () => loadavg()[0] > cpus().length;

export function buildServer() {
  const binary = path.join(scratch, 'stamped_server');
  const built = spawnSync(process.env.CC ?? 'cc',
                          ['-O2', '-Wall', '-Wextra', '-Werror', '-o', binary, path.join(peers, 'stamped_server.c')],
                          { encoding: 'utf8' });
  if (built.error) {
    console.log('skipped: no C compiler (cc)');
    process.exit(77);
  }
  if (built.status !== 0) throw new Error(built.stderr);
  return binary;
}

let runs = 0;
/** Runs `prony bench` with `args` against a fresh stamped server; `meanwhile(server, started)` is
 *  called once it runs. Resolves {code, stdout, stderr, record, rows, joined}; `joined` is null where
 *  the server did not live to write its stamps. */
export async function benchStamped(prony, binary, { server: serverArgs = [], args, meanwhile = async () => {} }) {
  const folder = path.join(scratch, `run${++runs}`), stamps = `${folder}.stamps`;
  const server = await startServer(binary, ['--stamps', stamps, ...serverArgs]);
  const finished = run(prony, [
    'bench', '--base-url', server.url, '--endpoint-type', 'openai-chat', '--model', 'stamped', '--on-invalid', 'warn',
    '--input-len', '64', '--save-detailed', '--out', folder, '--json', ...args], { timeoutMs: 100_000 });
  await meanwhile(server);
  const result = await finished;
  const ended = await server.stop();
  if (result.stdout === '') throw new Error(`${result.code}: ${result.stderr}`);
  const file = path.join(folder, 'requests.jsonl');
  const rows = readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
  return { ...result, record: JSON.parse(result.stdout), rows,
           joined: ended === 0 ? joinFiles(stamps, file) : null };
}
