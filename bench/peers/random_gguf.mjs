// A GGUF file of a Llama shape with random weights, for speed alone: node random_gguf.mjs FILE bf16|q8_0
// [LAYERS HIDDEN HEADS KV_HEADS INTERMEDIATE VOCAB], by default Llama-3.2-1B's, head tied.
// Source: the GGUF specification, version 3 (ggml, docs/gguf.md).
import { closeSync, openSync, writeSync } from 'node:fs';

const [file, format, ...shape] = process.argv.slice(2);
const [layers, hidden, heads, kvHeads, inner, vocab] =
  shape.length > 0 ? shape.map(Number) : [16, 2048, 32, 8, 8192, 128256];
const headDim = hidden / heads;
const kinds = { f32: 0, q8_0: 8, bf16: 30 };

const parts = [];
const u32 = (x) => { const b = Buffer.alloc(4); b.writeUInt32LE(x); parts.push(b); };
const u64 = (x) => { const b = Buffer.alloc(8); b.writeBigUInt64LE(BigInt(x)); parts.push(b); };
const text = (s) => { const b = Buffer.from(s); u64(b.length); parts.push(b); };
const f32 = (x) => { const b = Buffer.alloc(4); b.writeFloatLE(x); parts.push(b); };
const values = { u32: [4, u32], i32: [5, u32], f32: [6, f32], text: [8, text] };
const entries = [];
const entry = (key, type, value) => entries.push(() => { text(key); u32(values[type][0]); values[type][1](value); });
const list = (key, type, items) => entries.push(() => {
  text(key); u32(9); u32(values[type][0]); u64(items.length); items.forEach(values[type][1]);
});
entry('general.architecture', 'text', 'llama');
entry('llama.block_count', 'u32', layers);
entry('llama.context_length', 'u32', 8192);
entry('llama.embedding_length', 'u32', hidden);
entry('llama.feed_forward_length', 'u32', inner);
entry('llama.attention.head_count', 'u32', heads);
entry('llama.attention.head_count_kv', 'u32', kvHeads);
entry('llama.attention.layer_norm_rms_epsilon', 'f32', 1e-5);
entry('llama.rope.dimension_count', 'u32', headDim);
entry('llama.rope.freq_base', 'f32', 500000);
entry('tokenizer.ggml.model', 'text', 'gpt2');
entry('tokenizer.ggml.pre', 'text', 'llama-bpe');
list('tokenizer.ggml.tokens', 'text', Array.from({ length: vocab }, (_, i) => `t${i}`));
list('tokenizer.ggml.token_type', 'i32', Array.from({ length: vocab }, () => 1));
list('tokenizer.ggml.merges', 'text', ['t 1']);
entry('tokenizer.ggml.bos_token_id', 'u32', 0);
entry('tokenizer.ggml.eos_token_id', 'u32', 1);

const tensors = [['token_embd.weight', [hidden, vocab]], ['output_norm.weight', [hidden]]];
for (let i = 0; i < layers; ++i) {
  const add = (name, ...dims) => tensors.push([`blk.${i}.${name}.weight`, dims]);
  add('attn_norm', hidden); add('ffn_norm', hidden);
  add('attn_q', hidden, hidden); add('attn_k', hidden, kvHeads * headDim);
  add('attn_v', hidden, kvHeads * headDim); add('attn_output', hidden, hidden);
  add('ffn_gate', hidden, inner); add('ffn_up', hidden, inner); add('ffn_down', inner, hidden);
}
const kind = (dims) => (dims.length === 1 ? 'f32' : format);
const size = (dims) => {
  const count = dims.reduce((a, b) => a * b, 1);
  return { f32: count * 4, bf16: count * 2, q8_0: count / 32 * 34 }[kind(dims)];
};
const padded = (x) => Math.ceil(x / 32) * 32;
parts.push(Buffer.from('GGUF')); u32(3); u64(tensors.length); u64(entries.length);
entries.forEach((write) => write());
let offset = 0;
for (const [name, dims] of tensors) {
  text(name); u32(dims.length); dims.forEach(u64); u32(kinds[kind(dims)]); u64(offset);
  offset += padded(size(dims));
}

// xorshift32: speed does not depend on the values, but none may overflow.
let state = 1;
const random = () => { state ^= state << 13; state ^= state >>> 17; state ^= state << 5; return state >>> 0; };
const block = Buffer.alloc(34 * (1 << 16));
for (let i = 0; i < block.length / 34; ++i) {
  if (format === 'q8_0') {
    block.writeUInt16LE(0x0c00, i * 34); // 2^-12 in fp16
    for (let k = 2; k < 34; ++k) block[i * 34 + k] = random() & 0xff;
  } else {
    for (let k = 0; k < 17; ++k) block.writeUInt16LE(0x3c80 | (random() & 0x807f), i * 34 + 2 * k); // about 2^-6
  }
}
const descriptor = openSync(file, 'w');
let at = writeSync(descriptor, Buffer.concat(parts));
at += writeSync(descriptor, Buffer.alloc(padded(at) - at));
for (const [, dims] of tensors) {
  if (dims.length === 1) {
    const ones = Buffer.alloc(dims[0] * 4);
    for (let i = 0; i < dims[0]; ++i) ones.writeFloatLE(1, 4 * i);
    writeSync(descriptor, ones);
    writeSync(descriptor, Buffer.alloc(padded(ones.length) - ones.length));
    continue;
  }
  for (let left = padded(size(dims)); left > 0;) left -= writeSync(descriptor, block, 0, Math.min(left, block.length));
}
closeSync(descriptor);
