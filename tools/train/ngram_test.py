"""ngram.py against a direct implementation of interpolated Kneser-Ney on small random texts."""
import collections
import unittest

try:
    import numpy as np  # Debian's python3-numpy

    import ngram
except ImportError:
    np = None


def direct(train, test, order, vocabulary):
    """P of each test token by dictionaries, written from the definition."""
    counts = {}
    for n in range(1, order + 1):
        if n == order:
            counts[n] = collections.Counter(tuple(train[i:i + n]) for i in range(len(train) - n + 1))
        else:
            longer = {tuple(train[i:i + n + 1]) for i in range(len(train) - n)}
            counts[n] = collections.Counter(g[1:] for g in longer)
    out = []
    for i in range(len(test)):
        p = 1.0 / vocabulary
        for n in range(1, order + 1):
            if i < n - 1:
                continue
            table = counts[n]
            n1 = sum(1 for c in table.values() if c == 1)
            n2 = sum(1 for c in table.values() if c == 2)
            d = n1 / (n1 + 2 * n2) if n1 + n2 else 0.5
            context = tuple(test[i - n + 1:i])
            mine = {g[-1]: c for g, c in table.items() if g[:-1] == context}
            if mine:
                total = sum(mine.values())
                p = (max(mine.get(test[i], 0) - d, 0) + d * len(mine) * p) / total
        out.append(p)
    return out


@unittest.skipIf(np is None, "needs numpy")
class NgramTest(unittest.TestCase):
    def test_equals_the_definition(self):
        for seed in range(5):
            draw = np.random.default_rng(seed)
            train = draw.integers(0, 6, 300).astype(np.uint16)
            test = draw.integers(0, 7, 80).astype(np.uint16)
            orders = [ngram.build(train, 4, n) for n in range(1, 5)]
            p = np.full(len(test), 1.0 / 7)
            for n, counts in enumerate(orders, 1):
                grams = ngram.hashes(test, n)
                contexts = ngram.hashes(test, n - 1)[:len(grams)] if n > 1 else np.zeros(len(test), dtype=np.uint64)
                p[n - 1:] = counts.mix(p[n - 1:], grams, contexts)
            np.testing.assert_allclose(p, direct(train.tolist(), test.tolist(), 4, 7), rtol=1e-12)

    def test_sums_to_one(self):
        train = np.random.default_rng(9).integers(0, 5, 400).astype(np.uint16)
        orders = [ngram.build(train, 3, n) for n in range(1, 4)]
        total = 0.0
        for word in range(5):
            test = np.array([2, 3, word], dtype=np.uint16)
            p = np.full(3, 0.2)
            for n, counts in enumerate(orders, 1):
                grams = ngram.hashes(test, n)
                contexts = ngram.hashes(test, n - 1)[:len(grams)] if n > 1 else np.zeros(3, dtype=np.uint64)
                p[n - 1:] = counts.mix(p[n - 1:], grams, contexts)
            total += p[2]
        self.assertAlmostEqual(total, 1.0, places=12)


if __name__ == "__main__":
    unittest.main()
