#!/usr/bin/env python3
"""Trains the house model's tokenizer and encodes the corpus with it.

    python3 tools/train/tokenizer.py train  --corpus DIR --out FOLDER
    python3 tools/train/tokenizer.py encode --corpus DIR --tokenizer FOLDER --out DIR
    python3 tools/train/tokenizer.py texts  --corpus DIR --tokenizer FOLDER --out FOLDER

`train` writes tokenizer.json (byte-level BPE, 8,192 entries, Llama-3's pre-tokenizer) and
tokenizer_config.json with the chat template, from the training part alone. `encode` writes for each
split SPLIT.bin (uint16 tokens: begin, text, end of each document) and SPLIT.json (each document's
name, class, first token, tokens and bytes of text). `texts` writes the two held-out evaluation texts
of about 32K and 200K tokens out of different documents of the test part. Needs the package `tokenizers`.
"""
import argparse
import hashlib
import json
import pathlib

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, processors, trainers

VOCABULARY = 8192
BEGIN, END = "<|begin_of_text|>", "<|end_of_text|>"
SYSTEM, USER, ASSISTANT, END_OF_TURN = "<|system|>", "<|user|>", "<|assistant|>", "<|end_of_turn|>"
SPECIAL = [BEGIN, END, SYSTEM, USER, ASSISTANT, END_OF_TURN]
SPLIT = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|"
         r"\s*[\r\n]+|\s+(?!\S)|\s+")
CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>\\n' + "
    "message['content'] + '<|end_of_turn|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}")


def records(path):
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def texts(path):
    for r in records(path):
        if "text" in r:
            yield r["text"]
        else:
            for _, text in r["turns"]:
                yield text


def train(corpus, out):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=SPECIAL, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(texts(corpus / "train.jsonl"), trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{BEGIN} $A", pair=f"{BEGIN} $A {BEGIN}:1 $B:1", special_tokens=[(BEGIN, 0)])
    out.mkdir(parents=True, exist_ok=True)
    # Without indentation: the file is data for programs and counts towards the model's size.
    (out / "tokenizer.json").write_text(
        json.dumps(json.loads(tokenizer.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
    (out / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "bos_token": BEGIN, "eos_token": END,
        "model_max_length": 8192, "clean_up_tokenization_spaces": False, "add_bos_token": True,
        "model_input_names": ["input_ids", "attention_mask"], "chat_template": CHAT_TEMPLATE}, indent=2) + "\n")
    print(f"tokenizer: {tokenizer.get_vocab_size()} entries")


def encode(corpus, folder, out):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    ids = [tokenizer.token_to_id(s) for s in SPECIAL]
    begin, end, roles, turn_end = ids[0], ids[1], {"system": ids[2], "user": ids[3], "assistant": ids[4]}, ids[5]
    newline = tokenizer.encode("\n", add_special_tokens=False).ids
    out.mkdir(parents=True, exist_ok=True)

    def encoded(strings):
        return [e.ids for e in tokenizer.encode_batch_fast(strings, add_special_tokens=False)]

    for split in ("train", "validation", "test"):
        documents, pieces, at = [], [], 0
        batch = []

        def flush():
            nonlocal at
            flat = encoded([t for r in batch for t in ([r["text"]] if "text" in r else [t for _, t in r["turns"]])])
            position = 0
            for r in batch:
                if "text" in r:
                    tokens, size = [begin, *flat[position], end], len(r["text"].encode())
                    position += 1
                else:
                    tokens, size = [begin], 0
                    for role, text in r["turns"]:
                        tokens += [roles[role], *newline, *flat[position], turn_end, *newline]
                        size += len(text.encode())
                        position += 1
                    tokens.append(end)
                pieces.append(np.array(tokens, dtype=np.uint16))
                documents.append([r["name"], r["class"], at, len(tokens), size])
                at += len(tokens)
            batch.clear()

        for r in records(corpus / f"{split}.jsonl"):
            batch.append(r)
            if len(batch) == 2048:
                flush()
        flush()
        tokens = np.concatenate(pieces)
        tokens.tofile(out / f"{split}.bin")
        (out / f"{split}.json").write_text(json.dumps(documents))
        size = sum(d[4] for d in documents)
        print(f"{split}: {len(documents)} documents, {size} bytes, {len(tokens)} tokens, "
              f"{size / len(tokens):.3f} bytes a token")


def held_out_texts(corpus, folder, out):
    """Two texts of test documents, the classes by turns: many short pieces, then fewer long ones."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    by_class = {}
    for r in records(corpus / "test.jsonl"):
        by_class.setdefault(r["class"], []).append(r)
    queue = []
    for kind in sorted(by_class):
        by_class[kind].sort(key=lambda r: hashlib.blake2b(r["name"].encode()).digest())
    while any(by_class.values()):
        queue += [by_class[kind].pop(0) for kind in sorted(by_class) if by_class[kind]]

    def size_of(text):
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    for name, wanted, most in (("eval-32k.txt", 32768, 2500), ("eval-200k.txt", 200000, 13000)):
        pieces, sizes, used = [], 0, []
        while sizes < wanted and queue:
            record = queue.pop(0)
            kept, size = [], 0
            for p in record["text"].split("\n\n"):
                size += size_of(p) + 1
                if size > min(most, wanted - sizes + 40):
                    break
                kept.append(p)
            if sum(map(len, kept)) > 400 or wanted - sizes < 400:
                pieces.append("\n\n".join(kept))
                used.append(record["name"])
                sizes += size_of(pieces[-1]) + 1
        text = "\n\n".join(pieces) + "\n"
        (out / name).write_text(text, encoding="utf-8")
        print(f"{name}: {size_of(text)} tokens, {len(text.encode())} bytes, {' '.join(used)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("train", "encode", "texts"))
    parser.add_argument("--corpus", type=pathlib.Path, required=True)
    parser.add_argument("--tokenizer", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    if options.what == "train":
        train(options.corpus, options.out)
    elif options.what == "texts":
        held_out_texts(options.corpus, options.tokenizer, options.out)
    else:
        encode(options.corpus, options.tokenizer, options.out)


if __name__ == "__main__":
    main()
