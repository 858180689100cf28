#!/usr/bin/env python3
"""Writes the parts of the model card that are figures: SOURCES.md and the generated part of README.md.

    python3 tools/train/card.py [--check]

Reads corpus.manifest.json and results/*.json beside this script and writes into data/models/prony-12m.
In README.md only what stands between the marks `<!-- figures -->` and `<!-- end -->` is replaced, so
that no figure or continuation in the card is typed by hand. --check writes nothing and exits 1 if a
file differs. Standard library only.
"""
import argparse
import json
import math
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
MODEL = HERE.parent.parent / "data" / "models" / "prony-12m"
MARKS = ("<!-- figures -->\n", "<!-- end -->\n")
POSITIONS = (0, 128, 512, 1024, 2048, 4096, 6144, 8192)


def read(name):
    return json.loads((HERE / name).read_text(encoding="utf-8"))


def sources(manifest):
    lines = ["# Where the house model's text comes from", "",
             "Debian 12 packages, section main. Made by tools/train/card.py from "
             "tools/train/corpus.manifest.json, which also has each archive's SHA-256.", "",
             "| package | version | class | text, KB | licences named in its copyright file |",
             "|---|---|---|---|---|"]
    for name, p in sorted(manifest["packages"].items()):
        licences = ", ".join(p["licences"]).replace("|", "\\|")
        lines.append(f"| {name} | {p['version']} | {p['class']} | {p['text_bytes'] / 1000:.0f} | {licences} |")
    return "\n".join(lines) + "\n"


def figures(manifest):
    test, text, ngram, curve = (read(f"results/{n}.json") for n in ("test", "text", "ngram", "curve"))
    out = ["### Corpus", "", "| class | text, MB |", "|---|---|"]
    out += [f"| {k} | {n / 1e6:.1f} |" for k, n in manifest["text_bytes_by_class"].items()]
    splits = manifest["splits"]
    out += ["", "| part | documents | text, MB | SHA-256 |", "|---|---|---|---|"]
    out += [f"| {k} | {s['documents']} | {s['text_bytes'] / 1e6:.2f} | `{s['sha256'][:16]}…` |"
            for k, s in splits.items()]
    out += ["", "Share of the held-out text's 13-word sequences that stand in the training text: "
            f"{100 * manifest['leakage']['13-word sequences of the held-out text that the training text contains']:.2f} %.",
            "", "### Held-out figures", "",
            "Bits per byte of the test part, windows of 8,192 tokens, fp32. The baseline is an interpolated "
            "Kneser-Ney 5-gram model over the same tokens, trained on the same text.", "",
            "| documents | bytes | bits per byte | 5-gram |", "|---|---|---|---|"]
    for k, e in test["bits_per_byte"].items():
        base = ngram["bits_per_byte"] if k == "all" else ngram["by_class"].get(k.removeprefix("class "), "")
        out.append(f"| {k} | {e['bytes']} | {e['bits_per_byte']:.3f} | {base and f'{base:.3f}'} |")
    whole = test["bits_per_byte"]["all"]["bits_per_byte"]
    out += ["", f"All documents: {100 * (1 - whole / ngram['bits_per_byte']):.1f} % below the 5-gram model.", "",
            "| text | tokens | bits per byte | perplexity | log-likelihood, nats |", "|---|---|---|---|---|"]
    out += [f"| {e['file']} | {e['tokens']} | {e['bits_per_byte']:.4f} | {e['perplexity']:.3f} | "
            f"{e['log_likelihood_nats']:.3f} |" for e in text]
    out += ["", f"Perplexity by position, geometric mean over {test['windows_by_position']} full windows:", "",
            "| tokens before | perplexity |", "|---|---|"]
    by_128 = test["perplexity_by_128_tokens"]
    for a, b in zip(POSITIONS, POSITIONS[1:]):
        mine = by_128[a // 128:b // 128]
        out.append(f"| {a} to {b} | {math.exp(sum(map(math.log, mine)) / len(mine)):.2f} |")
    out += ["", "### Training curve", "", "| step | tokens, M | epochs | context | rate | loss, nats a token | "
            "validation bits per byte |", "|---|---|---|---|---|---|---|"]
    out += [f"| {e['step']} | {e['tokens'] / 1e6:.0f} | {e['epochs']:.1f} | {e['context']} | {e['rate']} | {e['loss']} | "
            f"{e['validation_bits_per_byte']} |" for e in curve if "validation_bits_per_byte" in e and "loss" in e]
    out += ["", "### Ten continuations", "",
            "Temperature 0.7, top 40, seed 1, at most 100 tokens, nothing chosen or edited.", ""]
    for e in read("results/prompts.json"):
        continuation = e["continuation"].replace("\n", "\n> ")
        out += [f"> **{e['prompt']}**{continuation}", ""]
    return "\n".join(out) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    manifest = read("corpus.manifest.json")
    card = (MODEL / "README.md").read_text(encoding="utf-8")
    before, _, rest = card.partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    wanted = {MODEL / "SOURCES.md": sources(manifest),
              MODEL / "README.md": before + MARKS[0] + figures(manifest) + MARKS[1] + after}
    for path, text in wanted.items():
        if options.check:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                sys.exit(f"{path.name}: found other figures than the results have; run tools/train/card.py")
        else:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
