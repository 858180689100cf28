"""extract.py: each reader on a small sample of its format, and what none of them may do."""
import bz2
import gzip
import random
import struct
import unittest
import zlib

import extract

PROSE = "The quick brown fox jumped over the lazy dog, and then it went home to sleep in the sun."


class Prose(unittest.TestCase):
    def test_prose(self):
        self.assertTrue(extract.is_prose(PROSE))

    def test_not_prose(self):
        for text in ("for (int i = 0; i < n; ++i) { sum += a[i] * b[i]; } return sum;",
                     "GET /index.html HTTP/1.1 Host: example.org Accept: */* Connection: close.",
                     "Der schnelle braune Fuchs springt über den faulen Hund und schläft dann ein.",
                     "apple banana cherry damson elderberry fig grape hazelnut kiwi lemon.",
                     "the of and to a in is that it", "Short one."):
            self.assertFalse(extract.is_prose(text), text)

    def test_headings_stay_only_before_prose(self):
        self.assertEqual(extract.clean(["Lost heading", "x = 1", "Kept heading", PROSE, "Last heading"]),
                         ["Kept heading", PROSE])

    def test_boilerplate_goes(self):
        self.assertEqual(extract.clean(["All rights reserved by the people who made this thing for you to use."]), [])


class Formats(unittest.TestCase):
    def test_html(self):
        page = (f"<html><head><title>t</title><style>p {{}}</style></head><body><nav>Home Next</nav><main><h1>Foxes</h1>"
                f"<p>{PROSE.replace('and', '<em>and</em>')} " + "It was &quot;good&quot; for the fox to be at home with us. " * 12 +
                "</p><pre>int main() { return 0; }</pre><script>var the = 1;</script></main><footer>Contact us.</footer>")
        got = extract.clean(extract.from_html(page.encode()))
        self.assertEqual(got[0], "Foxes")
        self.assertTrue(got[1].startswith(PROSE) and '"good"' in got[1])
        self.assertEqual(len(got), 2)

    def test_man(self):
        page = (b".TH FOX 1\n.\\\" a comment\n.SH DESCRIPTION\nThe\n.B fox\nprogram is what you use \\fIif\\fP there is a dog"
                b" in\nthe way of\n.BR home (1).\n.nf\nfox --jump dog\n.fi\n.PP\nIt has no other use.\n")
        self.assertEqual(extract.from_man(page), [
            "Description", "The fox program is what you use if there is a dog in the way of home(1).",
            "It has no other use."])

    def test_mdoc(self):
        page = b".Sh NAME\n.Nm fox\n.Nd jumps\nThe\n.Nm fox\nutility reads\n.Ar file , dog .\n"
        self.assertEqual(extract.from_man(page)[-1], "fox The fox utility reads file, dog.")

    def test_info(self):
        page = b"\x1f\nFile: fox.info,  Node: Top,  Up: (dir)\n\nFoxes\n*****\n\nThe fox is\nquick.\n\n* Menu:\n\n* Dogs:: x\n\n     code here\n"
        self.assertEqual(extract.from_info(page), ["Foxes", "The fox is quick."])

    def test_markdown(self):
        page = b"# Foxes\n\nThe [fox](http://x) is `quick`.\n\n```\ncode\n```\n\n.. note::\n\nA :ref:`dog <d>` too.\n"
        self.assertEqual([" ".join(p.split()) for p in extract.from_markdown(page)],
                         ["Foxes", "The fox is quick.", "A dog too."])

    def test_dictionary(self):
        body = b"fox\n   An animal that is {quick}, and\n   brown [syn: {vulpes}] in its ways.\n"
        index = b"00databaseinfo\tA\tB\nfox\tA\t" + b"BL\n"
        self.assertEqual(extract._number("BL"), 64 + 11)
        got = extract.from_dict(index, body, "foldoc")
        self.assertEqual(got, ["fox: An animal that is quick, and brown [syn: vulpes] in its ways."])

    def test_wordnet_senses(self):
        body = b"fox\n    n 1: alert carnivorous mammal with a bushy tail; most do not hunt\n    2: a shifty deceptive person of the town [syn: {dodger}]\n"
        got = extract.from_dict(b"fox\tA\tCZ\n", body, "wn")
        self.assertEqual(got, ["fox: alert carnivorous mammal with a bushy tail; most do not hunt.",
                               "fox: a shifty deceptive person of the town."])

    def test_sword(self):
        block = zlib.compress(b"<title>Genesis</title>In the beginning<note>x</note> was the fox.\x00And the dog.")
        self.assertEqual([p for p in extract.from_sword(struct.pack("<III", 0, len(block), 9), block) if p],
                         ["Genesis", "In the beginning was the fox.", "And the dog."])

    def test_games(self):
        self.assertEqual(extract.from_wml(b'[message]\n message= _ "He said ""run"" to" + _ " {FOX} <i>us</i>."\n'),
                         ['He said "run" to   us.'])
        self.assertEqual(extract.from_lua(b'vn.say(_([[We go home.]]), _("Say \\"no\\"."))'), ["We go home.", 'Say "no".'])
        self.assertEqual(extract.from_strings(b'text = _("One. "\n "Two.\\n\\nThree.")'), ["One. Two.", "Three."])
        self.assertEqual(extract.from_stringtable(b"KEY\n'''A [[tag x]]fox.'''\n"), ["A  fox."])
        self.assertEqual(extract.from_fortune(b"One\ntwo.\n%\nThree.\n%\n"), ["One two.", "Three.", ""])
        crawl = b"# c\n%%%%\nKey\n\nA dire\nfox.\n%%%%\nOther\n\n@The@ fox.\n"
        self.assertEqual([p.strip() for p in extract.from_crawl(crawl) if p], ["A dire fox."])

    def test_compressed_cache(self):
        self.assertIn("The fox.", [p.strip() for p in extract.READERS["cache"](bz2.compress(b"<p>The fox.</p>"))])

    def test_r_strings(self):
        def string(text):
            return b"\x00\x04\x00\x09" + struct.pack(">i", len(text)) + text
        plain = b"X\n" + string(b"It is a truth") + string(b"known to all.") + string(b"") + string(b"Next.")
        packed = zlib.compress(plain)
        self.assertEqual(extract.from_rdb(struct.pack(">I", len(plain)) + packed + b"the next object"),
                         ["It is a truth known to all.", "Next."])

    def test_unpacked(self):
        self.assertEqual(extract.unpacked("a.gz", gzip.compress(b"x")), b"x")
        self.assertEqual(extract.unpacked("a.txt", b"x"), b"x")


class Readers(unittest.TestCase):
    def test_choice(self):
        for path, reader in (("/usr/share/man/man1/fox.1.gz", "man"), ("/usr/share/man/de/man1/fox.1.gz", None),
                             ("/usr/share/doc/fox/html/index.html", "html"), ("/usr/share/doc/fox/changelog.gz", None),
                             ("/usr/share/doc/fox/fr/a.html", None), ("/usr/share/doc/fox/a.png", None),
                             ("/usr/share/dictd/wn.dict.dz", "dict"), ("/usr/share/info/fox.info-2.gz", "info"),
                             ("/usr/share/games/wesnoth/1.16/data/a.cfg", "wml"), ("/usr/bin/fox", None)):
            self.assertEqual(extract.reader_for(path), reader, path)

    def test_any_bytes_are_read_without_an_exception(self):
        draw = random.Random(7)
        alphabet = b"<>pre/main.SH\\fB\"'{}[]_()=%\n\n  The fox is of\xff\x00\xc3\xa9*:`#"
        for name, reader in extract.READERS.items():
            if name in ("cache", "rdb"):  # compressed: damage is zlib's error, which corpus.py reports
                continue
            for _ in range(60):
                data = bytes(draw.choice(alphabet) for _ in range(draw.randrange(400)))
                for p in extract.clean(reader(data)):
                    self.assertNotIn("\n", p, name)


if __name__ == "__main__":
    unittest.main()
