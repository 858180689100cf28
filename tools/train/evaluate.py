#!/usr/bin/env python3
"""Log-likelihoods of the house model in fp32: the reference for the engine, and the card's figures.

    python3 tools/train/evaluate.py --model FOLDER text FILE...      log-likelihood of whole files
    python3 tools/train/evaluate.py --model FOLDER test --data DIR   bits per byte of the test part
    python3 tools/train/evaluate.py --model FOLDER prompts           ten continuations

`text` needs the package `tokenizers`, or --tokens with uint16 token files in place of texts. A text is
scored in windows of --window tokens, each preceded by the begin mark alone (no overlap), so that an
engine can repeat it without guessing. Weights are bf16 widened to fp32; all arithmetic is fp32.
"""
import argparse
import json
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F

import model as house

PROMPTS = [
    "The history of the city begins", "To install the program, you should first",
    "Once upon a time there was a king who", "A dictionary is", "The sun rose over the hills and",
    "If the server does not answer,", "She looked at him and said,", "In mathematics, a function is",
    "The most important thing about writing is", "When the file has been opened,"]
BUCKET = 128


class Scorer:
    def __init__(self, folder, device):
        if device == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = False
        self.device = device
        self.network = house.load(folder).to(device).eval()
        generation = json.loads((pathlib.Path(folder) / "generation_config.json").read_text())
        self.begin, self.ends = generation["bos_token_id"], set(generation["eos_token_id"])

    @torch.no_grad()
    def nats(self, windows):
        """Negative log-likelihood of each token of equally long windows, the begin mark given."""
        x = torch.from_numpy(np.asarray(windows).astype(np.int64)).to(self.device)
        begin = torch.full((len(x), 1), self.begin, dtype=torch.int64, device=self.device)
        logits = self.network(torch.cat((begin, x[:, :-1]), 1))
        loss = F.cross_entropy(logits.flatten(0, 1), x.flatten(), reduction="none")
        return loss.view(x.shape).double().cpu().numpy()

    def text_nats(self, tokens, window):
        return np.concatenate([self.nats([tokens[at:at + window - 1]])[0]
                               for at in range(0, len(tokens), window - 1)])


def score_texts(scorer, options):
    results = []
    encode = None
    if not options.tokens:
        from tokenizers import Tokenizer
        encode = Tokenizer.from_file(str(options.model / "tokenizer.json")).encode
    for path in options.files:
        data = path.read_bytes()
        if options.tokens:
            tokens, size = np.frombuffer(data, dtype=np.uint16), None
        else:
            tokens = np.array(encode(data.decode(), add_special_tokens=False).ids)
            size = len(data)
        nats = scorer.text_nats(tokens, options.window)
        entry = {"file": path.name, "tokens": len(tokens), "window": options.window,
                 "log_likelihood_nats": -float(nats.sum()),
                 "perplexity": math.exp(nats.mean())}
        if size:
            entry.update(bytes=size, bits_per_byte=nats.sum() / math.log(2) / size)
        results.append(entry)
    return results


def score_test(scorer, options):
    tokens = np.fromfile(options.data / "test.bin", dtype=np.uint16)
    documents = json.loads((options.data / "test.json").read_text())
    held_out = set(options.held_out.split(",")) if options.held_out else set()
    sums = {}
    buckets, long_documents = np.zeros(options.window // BUCKET), 0
    for name, kind, first, count, size in documents:
        text = tokens[first + 1:first + count - 1]
        nats = scorer.text_nats(text, options.window)
        bits = nats.sum() / math.log(2)
        package = name.split("/")[0]
        for key in ("all", f"class {kind}", "unseen packages" if package in held_out else "seen packages"):
            known = sums.setdefault(key, [0.0, 0, 0])
            known[0] += bits
            known[1] += size
            known[2] += len(text)
        # Perplexity by position, over the whole windows of documents that fill them.
        for at in range(0, len(nats) - options.window + 1, options.window - 1):
            padded = np.append(nats[at:at + options.window - 1], nats[at + options.window - 2])
            buckets += padded.reshape(-1, BUCKET).mean(1)
            long_documents += 1
    return {"window": options.window,
            "bits_per_byte": {k: {"bits_per_byte": round(b / n, 4), "bytes": n, "tokens": t}
                              for k, (b, n, t) in sorted(sums.items())},
            "windows_by_position": long_documents,
            "perplexity_by_128_tokens": [round(math.exp(b / max(long_documents, 1)), 3) for b in buckets]}


def continuations(scorer, options):
    from tokenizers import Tokenizer
    tokenizer = Tokenizer.from_file(str(options.model / "tokenizer.json"))
    out = []
    for number, prompt in enumerate(PROMPTS):
        draw = np.random.default_rng(options.seed + number)
        ids = [scorer.begin, *tokenizer.encode(prompt, add_special_tokens=False).ids]
        for _ in range(options.length):
            with torch.no_grad():
                logits = scorer.network(torch.tensor([ids], device=scorer.device))[0, -1].double().cpu().numpy()
            top = np.argsort(-logits)[:40]
            p = np.exp((logits[top] - logits[top[0]]) / 0.7)
            ids.append(int(top[draw.choice(len(top), p=p / p.sum())]))
            if ids[-1] in scorer.ends:
                break
        out.append({"prompt": prompt, "continuation": tokenizer.decode(ids)[len(prompt):]})
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", type=pathlib.Path, required=True)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--window", type=int, default=8192)
    parser.add_argument("--out", type=pathlib.Path)
    what = parser.add_subparsers(dest="what", required=True)
    text = what.add_parser("text")
    text.add_argument("files", type=pathlib.Path, nargs="+")
    text.add_argument("--tokens", action="store_true", help="the files hold uint16 tokens")
    test = what.add_parser("test")
    test.add_argument("--data", type=pathlib.Path, required=True)
    test.add_argument("--held-out", default="", help="packages of which nothing was trained on, by comma")
    prompts = what.add_parser("prompts")
    prompts.add_argument("--seed", type=int, default=1)
    prompts.add_argument("--length", type=int, default=100)
    options = parser.parse_args()
    scorer = Scorer(options.model, options.device)
    result = {"text": score_texts, "test": score_test, "prompts": continuations}[options.what](scorer, options)
    rendered = json.dumps(result, indent=1, ensure_ascii=False)
    print(rendered)
    if options.out:
        options.out.write_text(rendered + "\n")


if __name__ == "__main__":
    main()
