// The CPU engine beside llama.cpp on one model shape (Llama-3.2-1B, random weights), one machine, turn by
// turn: prefill of 512 tokens, decode of 32 tokens after it, decode of 8 sequences at once.
// Usage: node llama_cpp.mjs PRONY MODULES FOLDER [--threads 2] [--rounds 3] [--bits 16 or 8; both]
// MODULES: a folder where `npm install node-llama-cpp` was run (it brings llama.cpp compiled for each
// instruction set); FOLDER: bf16.gguf and q8_0.gguf of random_gguf.mjs. Prints a line a measurement.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [program, modules, folder] = process.argv.slice(2);
const option = (name, value) => {
  const at = process.argv.indexOf(name);
  return at < 0 ? value : Number(process.argv[at + 1]);
};
const threads = option('--threads', 2), rounds = option('--rounds', 3), bits = option('--bits', 0);
const promptTokens = 512, outputTokens = 32, parallel = 8, shortPrompt = 16;
const seconds = () => performance.now() / 1000;

async function prony(dtype) {
  const server = spawn(program, ['serve', '--model', 'dummy:llama-3.2-1b', '--weight-dtype', dtype, '--port', '0',
    '--threads', `${threads}`, '--max-model-len', '1024', '--enable-prefix-caching', 'off'], { stdio: ['ignore', 'ignore', 'pipe'] });
  process.once('exit', () => server.kill('SIGKILL'));
  const url = await new Promise((resolve, reject) => {
    let stderr = '';
    server.once('exit', () => reject(new Error(stderr)));
    server.stderr.on('data', (piece) => {
      stderr += piece;
      const match = /listening on (\S+)/.exec(stderr);
      if (match) resolve(match[1]);
    });
  });
  const ask = async (tokens, output) => {
    const answer = await fetch(`${url}/v1/completions`, {
      method: 'POST', headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'dummy:llama-3.2-1b', prompt: 'a'.repeat(tokens - 1), max_tokens: output, temperature: 0, ignore_eos: true }),
    });
    const { usage } = await answer.json();
    if (usage.prompt_tokens !== tokens || usage.completion_tokens !== output) throw new Error(JSON.stringify(usage));
  };
  const timed = async (work) => { const begin = seconds(); await work(); return seconds() - begin; };
  await ask(16, 2);
  return {
    async measure() {
      const prefill = await timed(() => ask(promptTokens, 1));
      const both = await timed(() => ask(promptTokens, 1 + outputTokens));
      const all = (output) => Promise.all(Array.from({ length: parallel }, () => ask(shortPrompt, output)));
      const start = await timed(() => all(1));
      const whole = await timed(() => all(1 + outputTokens));
      return { prefill: promptTokens / prefill, decode: outputTokens / (both - prefill), decode8: parallel * outputTokens / (whole - start) };
    },
    close() { server.kill('SIGTERM'); },
  };
}

async function llamaCpp(file) {
  const entry = createRequire(path.join(path.resolve(modules), 'x.js')).resolve('node-llama-cpp');
  const { getLlama } = await import(pathToFileURL(entry));
  const llama = await getLlama({ gpu: false, build: 'never', logLevel: 'error', maxThreads: threads });
  console.error(`llama.cpp: ${llama.systemInfo}`);
  const model = await llama.loadModel({ modelPath: file });
  const context = await model.createContext({ contextSize: 1024, batchSize: promptTokens, sequences: parallel, threads });
  const sequences = Array.from({ length: parallel }, () => context.getSequence());
  const prompt = (count) => Array.from({ length: count }, (_, i) => 100 + i % 1000);
  const decode = async (sequence) => {
    let count = 0;
    for await (const token of sequence.evaluate([5], { temperature: 0, yieldEogToken: true })) {
      if (token >= 0 && ++count === outputTokens) return;
    }
    throw new Error(`ended after ${count} tokens`);
  };
  const timed = async (work) => { const begin = seconds(); await work(); return seconds() - begin; };
  await sequences[0].evaluateWithoutGeneratingNewTokens(prompt(16));
  return {
    async measure() {
      for (const sequence of sequences) await sequence.clearHistory();
      const prefill = await timed(() => sequences[0].evaluateWithoutGeneratingNewTokens(prompt(promptTokens)));
      const alone = await timed(() => decode(sequences[0]));
      for (const sequence of sequences) {
        await sequence.clearHistory();
        await sequence.evaluateWithoutGeneratingNewTokens(prompt(shortPrompt));
      }
      const together = await timed(() => Promise.all(sequences.map(decode)));
      return { prefill: promptTokens / prefill, decode: outputTokens / alone, decode8: parallel * outputTokens / together };
    },
    close() { return context.dispose(); },
  };
}

for (const [dtype, gguf, width] of [['bf16', 'bf16', 16], ['int8', 'q8_0', 8]]) {
  if (bits !== 0 && bits !== width) continue;
  const contestants = { [`prony ${dtype}`]: await prony(dtype), [`llama.cpp ${gguf}`]: await llamaCpp(path.join(folder, `${gguf}.gguf`)) };
  for (let round = 0; round < rounds; ++round) {
    for (const [name, contestant] of Object.entries(contestants)) {
      const { prefill, decode, decode8 } = await contestant.measure();
      console.log(`${name.padEnd(16)} prefill ${prefill.toFixed(1)} tokens/s, decode ${decode.toFixed(2)}, ${parallel} at once ${decode8.toFixed(1)}`);
    }
  }
  for (const contestant of Object.values(contestants)) await contestant.close();
}
process.exit(0);
