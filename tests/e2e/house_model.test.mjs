// The house model as shipped: the weights fit config.json, the tokenizer is whole, the card says
// what was measured, and the Python tests of tools/train pass.
// Usage: node house_model.test.mjs PATH/TO/prony (not run: the engine does not load the folder yet)
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { closeSync, openSync, readFileSync, readSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const folder = path.join(root, 'data/models/prony-12m');
const json = (name) => JSON.parse(readFileSync(path.join(folder, name), 'utf8'));
const sizeMax = 24e6;

/** The JSON header of a safetensors file and the size of what follows it. */
function safetensors(name) {
  const file = path.join(folder, name);
  const descriptor = openSync(file, 'r');
  const length = Buffer.alloc(8);
  readSync(descriptor, length, 0, 8, 0);
  const header = Buffer.alloc(Number(length.readBigUInt64LE()));
  readSync(descriptor, header, 0, header.length, 8);
  closeSync(descriptor);
  return { tensors: JSON.parse(header.toString('utf8')), bytes: statSync(file).size - 8 - header.length };
}

/** GPT-2's table from a byte to the character that stands for it in a byte-level vocabulary. */
function byteCharacters() {
  const plain = (b) => (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
  let next = 256;
  return Array.from({ length: 256 }, (_, b) => String.fromCodePoint(plain(b) ? b : next++));
}

const tests = {
  folderIsSmallEnough() {
    const bytes = readdirSync(folder).reduce((sum, name) => sum + statSync(path.join(folder, name)).size, 0);
    assert.ok(bytes <= sizeMax, `${bytes} bytes, at most ${sizeMax}`);
  },

  weightsFitTheConfiguration() {
    const c = json('config.json');
    const { tensors, bytes } = safetensors('model.safetensors');
    const q = c.num_attention_heads * c.head_dim;
    const kv = c.num_key_value_heads * c.head_dim;
    const expected = { 'model.embed_tokens.weight': [c.vocab_size, c.hidden_size], 'model.norm.weight': [c.hidden_size] };
    for (let i = 0; i < c.num_hidden_layers; ++i) {
      const layer = `model.layers.${i}.`;
      Object.assign(expected, {
        [`${layer}input_layernorm.weight`]: [c.hidden_size],
        [`${layer}post_attention_layernorm.weight`]: [c.hidden_size],
        [`${layer}self_attn.q_proj.weight`]: [q, c.hidden_size],
        [`${layer}self_attn.k_proj.weight`]: [kv, c.hidden_size],
        [`${layer}self_attn.v_proj.weight`]: [kv, c.hidden_size],
        [`${layer}self_attn.o_proj.weight`]: [c.hidden_size, q],
        [`${layer}mlp.gate_proj.weight`]: [c.intermediate_size, c.hidden_size],
        [`${layer}mlp.up_proj.weight`]: [c.intermediate_size, c.hidden_size],
        [`${layer}mlp.down_proj.weight`]: [c.hidden_size, c.intermediate_size],
      });
    }
    let at = 0;
    const found = {};
    const inFileOrder = Object.entries(tensors).filter(([name]) => name !== '__metadata__')
      .sort((a, b) => a[1].data_offsets[0] - b[1].data_offsets[0]);
    for (const [name, t] of inFileOrder) {
      assert.equal(t.dtype, 'BF16', name);
      assert.equal(t.data_offsets[0], at, name);
      assert.equal(t.data_offsets[1] - at, 2 * t.shape.reduce((a, b) => a * b, 1), name);
      at = t.data_offsets[1];
      found[name] = t.shape;
    }
    assert.equal(at, bytes);
    assert.deepEqual(Object.fromEntries(Object.entries(found).sort()), Object.fromEntries(Object.entries(expected).sort()));
  },

  weightsAreFiniteAndVaried() {
    const raw = readFileSync(path.join(folder, 'model.safetensors'));
    const start = 8 + Number(raw.readBigUInt64LE());
    const exponents = new Set();
    for (let at = start; at < raw.length; at += 2) {
      const exponent = (raw.readUInt16LE(at) >> 7) & 0xff;
      assert.notEqual(exponent, 0xff, `infinite or not a number at byte ${at}`);
      exponents.add(exponent);
    }
    assert.ok(exponents.size > 10);
  },

  tokenizerIsWhole() {
    const { model, added_tokens: added } = json('tokenizer.json');
    const c = json('config.json');
    const ids = Object.values(model.vocab).sort((a, b) => a - b);
    assert.deepEqual(ids, Array.from({ length: c.vocab_size }, (_, i) => i));
    const special = new Set(added.map((t) => t.content));
    for (const t of added) assert.equal(model.vocab[t.content], t.id);
    for (const b of byteCharacters()) assert.ok(b in model.vocab, `no entry for byte ${b}`);
    assert.equal(model.merges.length, c.vocab_size - special.size - 256);
    for (const [a, b] of model.merges) {
      assert.ok(a in model.vocab && b in model.vocab && a + b in model.vocab, `${a} ${b}`);
    }
    const generation = json('generation_config.json');
    const named = json('tokenizer_config.json');
    assert.equal(model.vocab[named.bos_token], generation.bos_token_id);
    assert.deepEqual(generation.eos_token_id, [model.vocab[named.eos_token], model.vocab['<|end_of_turn|>']]);
    assert.deepEqual(c.eos_token_id, generation.eos_token_id);
    for (const role of ['system', 'user', 'assistant']) assert.ok(special.has(`<|${role}|>`));
  },

  cardSaysWhatWasMeasured() {
    const got = spawnSync('python3', [path.join(root, 'tools/train/card.py'), '--check'], { encoding: 'utf8' });
    assert.equal(got.status, 0, got.stderr);
  },

  targetsOfTheModelHold() {
    const results = path.join(root, 'tools/train/results');
    const read = (name) => JSON.parse(readFileSync(path.join(results, name), 'utf8'));
    const bits = read('test.json').bits_per_byte.all.bits_per_byte;
    assert.ok(bits <= 1.3, `${bits} bits per byte`);
    assert.ok(bits <= 0.85 * read('ngram.json').bits_per_byte);
    for (const text of read('text.json')) {
      assert.equal(statSync(path.join(folder, text.file)).size, text.bytes, text.file);
    }
  },

  trainingScriptsPassTheirTests() {
    const got = spawnSync('python3', ['-B', '-m', 'unittest', 'discover', '-s', path.join(root, 'tools/train'), '-p', '*_test.py'],
      { encoding: 'utf8' });
    assert.equal(got.status, 0, got.stderr);
    assert.match(got.stderr, /Ran [1-9]\d* tests/);
  },
};

for (const [name, test] of Object.entries(tests)) {
  await test();
  console.log(`ok ${name}`);
}
