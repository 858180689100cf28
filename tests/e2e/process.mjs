// Child processes of the end-to-end tests: start a server and wait (bounded) until it listens.
import { spawn } from 'node:child_process';

/** Starts `program args`, resolves once it says "listening on URL" on stderr.
 *  stop() sends SIGTERM and gives the exit code; after 10 s it kills. */
export function startServer(program, args, { timeoutMs = 60_000 } = {}) {
  const child = spawn(program, args, { stdio: ['ignore', 'inherit', 'pipe'] });
  const exited = new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal)));
  process.once('exit', () => child.kill('SIGKILL'));
  let stderr = '';
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      child.kill('SIGKILL');
      reject(new Error(`${args[0]} did not listen within ${timeoutMs} ms; stderr: ${stderr}`));
    }, timeoutMs);
    exited.then((code) => {
      clearTimeout(timer);
      reject(new Error(`${args[0]} ended with ${code} before listening; stderr: ${stderr}`));
    });
    child.stderr.on('data', (piece) => {
      stderr += piece;
      const match = /listening on (http:\/\/\S+)/.exec(stderr);
      if (!match) return;
      clearTimeout(timer);
      resolve({
        url: match[1],
        pid: child.pid,
        stderr: () => stderr,
        async stop() {
          child.kill('SIGTERM');
          const killer = setTimeout(() => child.kill('SIGKILL'), 10_000);
          const code = await exited;
          clearTimeout(killer);
          return code;
        },
      });
    });
  });
}

/** Runs `program args` to its end; kills it after timeoutMs. Resolves {code, stdout, stderr}. */
export function run(program, args, { timeoutMs = 120_000, env = process.env, cwd } = {}) {
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env, cwd });
  let stdout = '', stderr = '';
  child.stdout.on('data', (piece) => { stdout += piece; });
  child.stderr.on('data', (piece) => { stderr += piece; });
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  return new Promise((resolve) => child.once('close', (code, signal) => {
    clearTimeout(timer);
    resolve({ code: code ?? signal, stdout, stderr });
  }));
}

/** Runs check(name) for the cases named on the command line, or all of `names`; a failed one is shown,
 *  makes the exit code 1, and keeps no other from running. */
export async function runCases(names, check) {
  const chosen = process.argv.slice(3);
  for (const name of chosen.length > 0 ? chosen : names) {
    try {
      await check(name);
      console.log(`ok   ${name}`);
    } catch (error) {
      console.log(`FAIL ${name}: ${error.stack}`);
      process.exitCode = 1;
    }
  }
}
