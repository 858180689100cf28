"""corpus.py: copies, splits, leakage and dialogues on small made-up documents."""
import unittest

try:
    import numpy  # noqa: F401  (Debian's python3-numpy)
    import corpus
except ImportError:
    corpus = None


def words(seed, count):
    """Made-up words of letters only: a paragraph's key does not see digits."""
    numbers = (str((seed * 7919 + i * i * 31 + i) % 10007) for i in range(count))
    return " ".join(n.translate(str.maketrans("0123456789", "abcdefghij")) for n in numbers)


@unittest.skipIf(corpus is None, "needs numpy")
class Corpus(unittest.TestCase):
    def test_near_duplicates(self):
        text = words(1, 600)
        changed = text.replace(text.split()[300], "other", 1)
        near = corpus.NearDuplicates()
        self.assertFalse(near.is_copy(corpus.sketch(text)))
        self.assertTrue(near.is_copy(corpus.sketch(changed)))
        self.assertFalse(near.is_copy(corpus.sketch(words(2, 600))))

    def test_gram_hashes_tell_order_and_place_apart(self):
        h = corpus.gram_hashes(corpus.word_hashes("a b c d a b c e"), 3)
        self.assertEqual(h[0], h[4])
        self.assertEqual(len(set(h.tolist())), 5)
        self.assertNotEqual(corpus.gram_hashes(corpus.word_hashes("c b a"), 3)[0], h[0])
        self.assertEqual(len(corpus.gram_hashes(corpus.word_hashes("a b"), 3)), 0)

    def test_leaks_are_removed(self):
        shared, own = words(3, 60), words(4, 60)
        documents = [{"split": "train", "paragraphs": [words(5, 50), shared]},
                     {"split": "test", "paragraphs": [own, shared]}]
        got = corpus.remove_leaks(documents, 1)
        self.assertEqual(documents[1]["paragraphs"], [own])
        self.assertEqual(documents[0]["paragraphs"][1], shared)
        self.assertEqual(list(got.values()), [1, 0.0])

    def test_split_is_fixed_and_of_the_wanted_size(self):
        names = [f"p/{i:05d}" for i in range(20000)]
        splits = [corpus.split_of("p", n) for n in names]
        self.assertEqual(splits, [corpus.split_of("p", n) for n in names])
        self.assertAlmostEqual(splits.count("test") / 20000, corpus.TEST_PER_MILLE / 1000, delta=0.003)
        self.assertAlmostEqual(splits.count("validation") / 20000, corpus.VALIDATION_PER_MILLE / 1000, delta=0.003)
        self.assertTrue(all(corpus.split_of(p, f"{p}/0000") == "test" for p in corpus.HELD_OUT))

    def test_repeated_paragraphs_and_documents(self):
        counts = {"repeated paragraphs": 0, "pages left empty": 0, "near-duplicate pages": 0, "pages over the cap": 0}
        long = [words(i, 40) + "." for i in range(8)]
        pages = [(ps, [corpus.paragraph_key(p) for p in ps], None) for ps in (long[:4], long[2:6], long[:2])]
        got = corpus.documents_of("p", "admin", pages, set(), corpus.NearDuplicates(), counts)
        self.assertEqual(got, [["p/0000", long[:6]]])
        self.assertEqual((counts["repeated paragraphs"], counts["pages left empty"]), (4, 1))

    def test_refusals(self):
        self.assertIsNone(corpus.refusal("doc", "License: GPL-2+\n"))
        self.assertIn("main", corpus.refusal("non-free/doc", ""))
        self.assertIn("non-commercial", corpus.refusal("doc", "License: CC-BY-NC-3.0\n"))
        self.assertIn("invariant", corpus.refusal("doc", "with the Invariant Sections being Foo"))

    def test_dialogues_come_from_training_dictionaries_only(self):
        entry = "fox: a quick animal that lives in the woods and hunts."
        documents = [{"name": "d/0", "class": "dictionary", "split": s, "paragraphs": [p]}
                     for s, p in (("train", entry), ("test", entry.replace("fox", "dog")))]
        got = corpus.dialogues(documents)
        self.assertEqual(len(got), 1)
        self.assertIn("fox", got[0]["turns"][0][1])
        self.assertEqual(got[0]["turns"][1][1], "Fox is a quick animal that lives in the woods and hunts.")


if __name__ == "__main__":
    unittest.main()
