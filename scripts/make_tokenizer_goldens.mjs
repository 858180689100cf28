// Makes tests/data/tokenizer: four small tokenizers of our own in the shapes of published ones, and
// what Hugging Face's library says of random strings. Run once; the files are kept, tests need no
// network. Needs the npm package @anush008/tokenizers 0.6.0 in the folder of MODULES:
//   node scripts/make_tokenizer_goldens.mjs MODULES
// With --compare FILE.json COUNT SEED OUT it writes COUNT strings and the library's ids for any
// tokenizer.json instead, for comparisons too large to keep (docs/tokenizers.md).
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

const args = process.argv.slice(2);
const require = createRequire(path.resolve(args[0], 'package.json'));
const { Tokenizer } = require('@anush008/tokenizers');
const root = path.resolve(path.dirname(new URL(import.meta.url).pathname), '..');

// ---- random strings -------------------------------------------------------------------------
function makeRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x9e3779b9) >>> 0;
    let t = state ^ (state >>> 16);
    t = Math.imul(t, 0x21f0aaad);
    t ^= t >>> 15;
    t = Math.imul(t, 0x735a2d97);
    return ((t ^ (t >>> 15)) >>> 0) / 4294967296;
  };
}
const words = ("the of and Hello world don't I'll WE'VE it's 's 'S '\u017f \u017f 123 4567 3.14 1,000 foo_bar " +
  'CamelCase na\u00efve caf\u00e9 Vi\u1ec7t \u4f60\u597d \u4e16\u754c \u3053\u3093\u306b\u3061\u306f \u043f\u0440\u0438\u0432\u0435\u0442 ' +
  '\u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u0939\u093f\u0928\u094d\u0926\u0940 \ud55c\uad6d\uc5b4 \u{1f44d}\u{1f3fd} ' +
  '\u{1f468}\u200d\u{1f469}\u200d\u{1f467} \ufb01 \u00bd \u2167 \u00b2 \u06f3\u06f4 \u180e \u00a0 \u2003 \u3000 \u200b \ufeff \u0085 \u2028 ' +
  'e\u0301 A\u030a \u1e9e \u0130 \u0131 \u00df <s> </s> <unk> <|im_start|> <|eot_id|> <|begin_of_text|> <tool_call> ' +
  '[INST] <bos> <mask> \u2581 \u2581\u2581 <0x41> a\u0000b').split(' ');
const ranges = [[0x20, 0x7e], [0x20, 0x7e], [0x0, 0x1f], [0xa0, 0x24f], [0x250, 0x36f], [0x370, 0x5ff],
  [0x600, 0x6ff], [0x900, 0xdff], [0xe00, 0x109f], [0x1100, 0x11ff], [0x1e00, 0x20ff], [0x2100, 0x2bff],
  [0x3000, 0x30ff], [0x4e00, 0x9fff], [0xac00, 0xd7a3], [0xf900, 0xfaff], [0xfe00, 0xffef],
  [0x10000, 0x1047f], [0x1d400, 0x1d7ff], [0x1f300, 0x1faff], [0x20000, 0x2ffff], [0xe0000, 0xe007f]];
const spaces = [' ', ' ', ' ', '  ', '\n', '\n\n', '\r\n', '\t', '   ', ''];
const runs = ['!!', '...', '--', '##', '"', "'", '(', ')', '\u00bf', '~~~~~~', '='.repeat(36), 'a'.repeat(49)];

function randomText(random) {
  const pick = (list) => list[Math.floor(random() * list.length)];
  let text = '';
  for (let parts = 1 + Math.floor(random() * 12); parts > 0; --parts) {
    const kind = random();
    if (kind < 0.55) {
      text += pick(words);
    } else if (kind < 0.9) {
      const [low, high] = pick(ranges);
      for (let n = 1 + Math.floor(random() * 5); n > 0; --n) {
        const c = String.fromCodePoint(low + Math.floor(random() * (high - low + 1)));
        // Unassigned code points may be assigned in one library's Unicode and not in the other's.
        if (!/[\p{Cs}\p{Cn}]/u.test(c)) text += c;
      }
    } else {
      text += pick(runs);
    }
    if (random() < 0.7) text += pick(spaces);
  }
  return text;
}

async function goldens(file, count, seed) {
  const tokenizer = Tokenizer.fromFile(file);
  const random = makeRandom(seed);
  const lines = [];
  for (let i = 0; i < count; ++i) {
    const text = randomText(random);
    const ids = (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds();
    lines.push(JSON.stringify({ text, ids, decoded: await tokenizer.decode(ids, false) }));
  }
  return lines.join('\n') + '\n';
}

// ---- small tokenizers -----------------------------------------------------------------------
const sample = fs.readFileSync(path.join(root, 'README.md'), 'utf8') + ' ' + words.join(' ').replaceAll('\u0000', '');

// ByteLevel's alphabet.
const alphabet = (() => {
  const map = [];
  let next = 256;
  for (let b = 0; b < 256; ++b) {
    const self = (b >= 33 && b <= 126) || (b >= 0xa1 && b <= 0xac) || b >= 0xae;
    map.push(String.fromCharCode(self ? b : next++));
  }
  return map;
})();
const toAlphabet = (text) => [...Buffer.from(text, 'utf8')].map((b) => alphabet[b]).join('');

// The usual training: join the commonest pair, the first of equals, `count` times.
function learnMerges(wordList, count) {
  let all = wordList.map((word) => [...word]);
  const merges = [];
  while (merges.length < count) {
    const seen = new Map();
    for (const word of all) {
      for (let i = 0; i + 1 < word.length; ++i) {
        const key = word[i] + '\u0001' + word[i + 1];
        seen.set(key, (seen.get(key) ?? 0) + 1);
      }
    }
    let best = null;
    for (const [key, n] of seen) if (n > 1 && (best === null || n > seen.get(best))) best = key;
    if (best === null) break;
    const [a, b] = best.split('\u0001');
    merges.push([a, b]);
    all = all.map((word) => {
      const joined = [];
      for (let i = 0; i < word.length; ++i) {
        if (i + 1 < word.length && word[i] === a && word[i + 1] === b) { joined.push(a + b); ++i; } else { joined.push(word[i]); }
      }
      return joined;
    });
  }
  return merges;
}
const vocabularyOf = (first, merges) => {
  const vocab = {};
  for (const token of [...first, ...merges.map(([a, b]) => a + b)]) vocab[token] ??= Object.keys(vocab).length;
  return vocab;
};
const added = (id, content, more = {}) => ({ id, content, single_word: false, lstrip: false, rstrip: false, normalized: false, special: true, ...more });
const split = (Regex) => ({ type: 'Split', pattern: { Regex }, behavior: 'Isolated', invert: false });
const byteLevel = { type: 'ByteLevel', add_prefix_space: false, trim_offsets: true, use_regex: false };
const wordsOfDigits = (digits) => "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}" + digits +
  '| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+';
const model = (vocab, merges, more) => ({ type: 'BPE', dropout: null, unk_token: null, continuing_subword_prefix: null,
  end_of_word_suffix: null, fuse_unk: false, byte_fallback: false, ignore_merges: false, vocab, merges, ...more });
const template = (token, id) => ({ type: 'TemplateProcessing', single: [{ SpecialToken: { id: token, type_id: 0 } }, { Sequence: { id: 'A', type_id: 0 } }],
  pair: [{ Sequence: { id: 'A', type_id: 0 } }, { Sequence: { id: 'B', type_id: 1 } }],
  special_tokens: { [token]: { id: token, ids: [id], tokens: [token] } } });
const spDecoder = (strip) => ({ type: 'Sequence', decoders: [{ type: 'Replace', pattern: { String: '\u2581' }, content: ' ' }, { type: 'ByteFallback' }, { type: 'Fuse' },
  ...(strip ? [{ type: 'Strip', content: ' ', start: 1, stop: 0 }] : [])] });

function tokenizers() {
  const byteMerges = learnMerges(sample.match(/ ?[^\s]+|\s+/g).map(toAlphabet), 420);
  const byteVocab = vocabularyOf(alphabet, byteMerges);
  const end = Object.keys(byteVocab).length;
  const base = { version: '1.0', truncation: null, padding: null };
  const pieces = sample.replaceAll(' ', '\u2581').match(/\u2581?[^\u2581]+/g);
  const spMerges = learnMerges(pieces, 420);
  const bytes = Array.from({ length: 256 }, (_, b) => `<0x${b.toString(16).toUpperCase().padStart(2, '0')}>`);
  const spVocab = vocabularyOf(['<unk>', '<s>', '</s>', ...bytes, '\u2581', ...'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,\'-_', ...new Set(spMerges.flat())], spMerges);
  const specials = [added(0, '<unk>'), added(1, '<s>'), added(2, '</s>')];
  return {
    'llama-3': { ...base,
      added_tokens: [added(end, '<|begin_of_text|>'), added(end + 1, '<|eot_id|>')], normalizer: null,
      pre_tokenizer: { type: 'Sequence', pretokenizers: [split(wordsOfDigits('{1,3}')), byteLevel] },
      post_processor: { type: 'Sequence', processors: [byteLevel, template('<|begin_of_text|>', end)] }, decoder: byteLevel,
      model: model(byteVocab, byteMerges.map((m) => m.join(' ')), { ignore_merges: true }) },
    qwen: { ...base,
      added_tokens: [added(end, '<|im_start|>'), added(end + 1, '<|im_end|>'), added(end + 2, '<tool_call>', { special: false })],
      normalizer: { type: 'NFC' },
      pre_tokenizer: { type: 'Sequence', pretokenizers: [split(wordsOfDigits('')), byteLevel] },
      post_processor: byteLevel, decoder: byteLevel, model: model(byteVocab, byteMerges, {}) },
    'llama-2': { ...base, added_tokens: specials,
      normalizer: { type: 'Sequence', normalizers: [{ type: 'Prepend', prepend: '\u2581' }, { type: 'Replace', pattern: { String: ' ' }, content: '\u2581' }] },
      pre_tokenizer: null, post_processor: template('<s>', 1), decoder: spDecoder(true),
      model: model(spVocab, spMerges.map((m) => m.join(' ')), { unk_token: '<unk>', fuse_unk: true, byte_fallback: true }) },
    gemma: { ...base, added_tokens: [...specials, added(Object.keys(spVocab).length, '<mask>', { special: false })],
      normalizer: { type: 'Replace', pattern: { String: ' ' }, content: '\u2581' },
      pre_tokenizer: { type: 'Split', pattern: { String: ' ' }, behavior: 'MergedWithPrevious', invert: false },
      post_processor: template('<s>', 1), decoder: spDecoder(false),
      model: model(spVocab, spMerges.map((m) => m.join(' ')), { unk_token: '<unk>', fuse_unk: true, byte_fallback: true }) },
    metaspace: { ...base, added_tokens: [...specials, added(Object.keys(spVocab).length, ' [INST]', { lstrip: true, rstrip: true, normalized: true })],
      normalizer: null, pre_tokenizer: { type: 'Metaspace', replacement: '\u2581', prepend_scheme: 'first', split: true },
      post_processor: template('<s>', 1), decoder: spDecoder(true),
      model: model(spVocab, spMerges.map((m) => m.join(' ')), { unk_token: '<unk>', fuse_unk: true, byte_fallback: false }) },
    'gpt-2': { ...base, added_tokens: [added(end, '<s>')], normalizer: null,
      pre_tokenizer: { type: 'Sequence', pretokenizers: [{ type: 'Digits', individual_digits: true }, { ...byteLevel, add_prefix_space: true, use_regex: true }] },
      post_processor: byteLevel, decoder: byteLevel, model: model(byteVocab, byteMerges, {}) },
  };
}

if (args[1] === '--compare') {
  fs.writeFileSync(args[5], await goldens(args[2], Number(args[3]), Number(args[4])));
} else {
  for (const [name, json] of Object.entries(tokenizers())) {
    const folder = path.join(root, 'tests/data/tokenizer', name);
    fs.mkdirSync(folder, { recursive: true });
    const file = path.join(folder, 'tokenizer.json');
    fs.writeFileSync(file, JSON.stringify(json) + '\n');
    fs.writeFileSync(path.join(folder, 'golden.jsonl'), await goldens(file, 300, 7));
  }
}
