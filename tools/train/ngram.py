#!/usr/bin/env python3
"""The baseline: an interpolated Kneser-Ney 5-gram model over the same tokens.

    python3 tools/train/ngram.py --data DIR [--order 5] [--threads N] [--out FILE]

Counts DIR/train.bin and scores DIR/test.bin (tokenizer.py's files), in bits per byte of text over
the same documents and tokens as evaluate.py. One absolute discount per order, D = n1 / (n1 + 2 n2)
(Ney, Essen and Kneser 1994); lower orders count distinct left neighbours, the lowest falls back to
the uniform distribution. N-grams are told apart by a 64-bit hash: with 1e8 of them the chance of
any collision is below 3e-4. Needs numpy only.
"""
import argparse
import concurrent.futures
import json
import math
import pathlib

import numpy as np


def hashes(tokens, length):
    """A 64-bit hash of the n-gram that starts at each position."""
    out = np.zeros(len(tokens) - length + 1, dtype=np.uint64)
    for j in range(length):
        out += tokens[j:len(tokens) - length + 1 + j].astype(np.uint64) + np.uint64(1)
        out *= np.uint64(0x9E3779B97F4A7C15)
        out ^= out >> np.uint64(31)
    return out


def find(keys, wanted):
    """Where each of `wanted` stands in the sorted `keys`, and whether it is there at all."""
    at = np.searchsorted(keys, wanted)
    at[at == len(keys)] = 0
    return at, keys[at] == wanted


class Order:
    """Counts of one order: n-grams, and their contexts' totals and numbers of continuations."""

    def __init__(self, grams, contexts, counts):
        # `grams` are distinct and sorted; `contexts` the hash of the first n-1 tokens of each.
        self.grams, self.counts = grams, counts
        self.contexts, inverse = np.unique(contexts, return_inverse=True)
        self.totals = np.bincount(inverse, weights=counts)
        self.kinds = np.bincount(inverse)
        ones, twos = int((counts == 1).sum()), int((counts == 2).sum())
        self.discount = ones / (ones + 2 * twos) if ones + twos else 0.5

    def mix(self, lower, grams, contexts):
        """P(word | context) from this order's counts and the lower order's probabilities."""
        at, known = find(self.contexts, contexts)
        gram_at, gram_known = find(self.grams, grams)
        count = np.where(gram_known, self.counts[gram_at], 0)
        total, kinds = self.totals[at], self.kinds[at]
        mixed = (np.maximum(count - self.discount, 0) + self.discount * kinds * lower) / total
        return np.where(known, mixed, lower)


def build(tokens, order, length):
    """The counts of n-grams of `length`: occurrences for the highest order, left neighbours below."""
    if length == order:
        grams, first, counts = np.unique(hashes(tokens, length), return_index=True, return_counts=True)
        starts = first
    else:
        longer, first = np.unique(hashes(tokens, length + 1), return_index=True)
        del longer
        own = hashes(tokens, length)[first + 1]
        grams, at, counts = np.unique(own, return_index=True, return_counts=True)
        starts = first[at] + 1
    if length == 1:
        contexts = np.zeros(len(starts), dtype=np.uint64)
    else:
        contexts = hashes(tokens, length - 1)[starts]
    return Order(grams, contexts, counts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--vocabulary", type=int, default=8192)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path)
    options = parser.parse_args()
    order = options.order
    train = np.fromfile(options.data / "train.bin", dtype=np.uint16)
    test = np.fromfile(options.data / "test.bin", dtype=np.uint16)
    documents = json.loads((options.data / "test.json").read_text())
    with concurrent.futures.ThreadPoolExecutor(options.threads) as pool:
        orders = list(pool.map(lambda n: build(train, order, n), range(1, order + 1)))

    probability = np.full(len(test), 1.0 / options.vocabulary)
    for length, counts in enumerate(orders, 1):
        if length > len(test):
            break
        grams = hashes(test, length)
        contexts = hashes(test, length - 1)[:len(grams)] if length > 1 else np.zeros(len(test), dtype=np.uint64)
        probability[length - 1:] = counts.mix(probability[length - 1:], grams, contexts)
    nats = -np.log(probability)

    bits, size, by_class = 0.0, 0, {}
    for _, kind, first, count, text_bytes in documents:
        # The text's own tokens: the begin mark is given, the end mark is not text.
        mine = float(nats[first + 1:first + count - 1].sum()) / math.log(2)
        bits += mine
        size += text_bytes
        known = by_class.setdefault(kind, [0.0, 0])
        known[0] += mine
        known[1] += text_bytes
    result = {"model": f"interpolated Kneser-Ney {order}-gram over tokens", "training_tokens": len(train),
              "grams": [len(o.grams) for o in orders], "discounts": [round(o.discount, 4) for o in orders],
              "bits_per_byte": round(bits / size, 4),
              "by_class": {k: round(b / n, 4) for k, (b, n) in sorted(by_class.items())}}
    text = json.dumps(result, indent=1)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
