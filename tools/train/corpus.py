#!/usr/bin/env python3
"""Builds the house model's corpus: free English prose out of Debian packages.

    python3 tools/train/corpus.py --work DIR [--offline] [--jobs N]

Steps, each from files the step before left in DIR, so that a second run repeats only what changed:
  1. download  every package of packages.txt with `apt-get download` into DIR/debs
  2. extract   each package's files into pages of clean paragraphs (extract.py), DIR/pages
  3. dedupe    paragraphs seen before, then pages that are near copies (MinHash of 5-word shingles)
  4. split     documents (runs of neighbouring pages of one package) into train, validation and test
               by a hash of their name; the packages of HELD_OUT go to test whole
  5. leak      held-out paragraphs that share 13-word sequences with the training part are removed
  6. write     DIR/{train,validation,test}.jsonl and corpus.manifest.json beside this script

The same packages give the same bytes: nothing depends on time, locale or hash seeds. Needs a Debian
12 system with apt sources for `main`, Python 3.11 and python3-numpy; no network beyond apt's own.
"""
import argparse
import hashlib
import json
import multiprocessing
import pathlib
import re
import subprocess
import sys
import tarfile
import zlib

import numpy as np

import extract

HERE = pathlib.Path(__file__).resolve().parent
# Test only, whole: what the model makes of sources of which it has seen no other page.
HELD_OUT = {"debian-history", "dict-devil", "display-dhammapada", "ganeti-doc", "gitmagic", "mame-doc",
            "python-abydos-doc", "python-urwid-doc", "wesnoth-1.16-dm"}
# The most text one package may give, so that no manual dominates; books and tales are taken whole.
CAP_BYTES = {"books": 8 << 20, "dictionary": 40 << 20, "stories": 20 << 20, "encyclopaedic": 12 << 20,
             "guides": 6 << 20, "admin": 6 << 20, "programming": 4 << 20, "perl": 1 << 20}
LEAST_DOCUMENT_BYTES = 64 << 10   # neighbouring pages are joined up to this
MOST_DOCUMENT_BYTES = 256 << 10   # and longer ones cut at a paragraph
LEAST_PAGE_BYTES = 300
LEAST_FRESH_BYTES = 120           # of a page once what was seen before is gone
SHINGLE_WORDS = 5
SKETCH_BINS = 64
SKETCH_BANDS = 16
NEAR_DUPLICATE = 0.7              # share of equal bins from which two pages count as copies
LEAK_WORDS = 13
LEAK_SHARE = 0.10                 # of a held-out paragraph's 13-word sequences
TEST_PER_MILLE, VALIDATION_PER_MILLE = 15, 8
CHAT_DIALOGUES = 30000


def log(*parts):
    print(*parts, file=sys.stderr, flush=True)


def read_packages(path):
    """{package: class}; the order of the file is the order of the corpus."""
    found = {}
    for number, line in enumerate(path.read_text().split("\n"), 1):
        if not line or line.startswith("#"):
            continue
        kind, _, names = line.partition(":")
        if kind not in CAP_BYTES or not names:
            sys.exit(f"{path}:{number}: expected 'CLASS: names' with a class of {sorted(CAP_BYTES)}")
        for name in names.split():
            found[name] = kind
    return found


def deb_of(folder, name):
    return next(iter(sorted(folder.glob(f"{name}_*.deb"))), None)


def pages_of(folder, name):
    return next(iter(sorted(folder.glob(f"{name}_*.json"))), None)


def download(packages, folder):
    folder.mkdir(parents=True, exist_ok=True)
    missing = [p for p in packages if not deb_of(folder, p)]
    for at in range(0, len(missing), 50):
        subprocess.run(["apt-get", "-q", "download", *missing[at:at + 50]], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        log(f"download: {min(at + 50, len(missing))} of {len(missing)}")


# --- extraction ---------------------------------------------------------------------------------

_LICENCES = [
    ("GFDL", r"GNU Free Documentation License|\bGFDL\b|\bFDL\b"), ("AGPL", r"Affero"),
    ("LGPL", r"Lesser General Public|Library General Public|\bLGPL"),
    ("GPL", r"GNU General Public License|\bGPL\b"), ("Apache-2.0", r"Apache License|Apache-2"),
    ("CC-BY-SA", r"Attribution[- ]Share|CC[- ]BY[- ]SA"), ("CC-BY", r"Creative Commons Attribution|CC[- ]BY"),
    ("MIT", r"\bMIT\b|\bExpat\b|Permission is hereby granted, free of charge"),
    ("BSD", r"\bBSD\b|Redistribution and use in source"), ("Artistic", r"Artistic"),
    ("public-domain", r"public[- ]domain"), ("MPL", r"Mozilla Public|MPL"), ("PSF", r"Python Software Foundation"),
    ("PostgreSQL", r"PostgreSQL"), ("ISC", r"\bISC\b"), ("OFL", r"\bOFL\b")]


# Packages whose copyright file is in another package of the same source, or names no licence.
_LICENCE_KNOWN = {"cmake-doc": ["BSD-3-clause"], "manpages-dev": ["as manpages"], "zsh-doc": ["Zsh (MIT-like)"],
                  "debian-faq": ["notice kept, derived works under the same notice"]}


def licence_names(package, text):
    """The names a machine-readable copyright file gives, else those its prose mentions."""
    if package in _LICENCE_KNOWN:
        return _LICENCE_KNOWN[package]
    named = re.findall(r"^License:[ \t]*([^\n]+)", text, flags=re.M)
    if named:
        return sorted({n.strip()[:40] for n in named})[:12]
    return [name for name, pattern in _LICENCES if re.search(pattern, text)] or ["see package"]


def refusal(section, copyright_text):
    """Why the package may not be used, or None."""
    if section.startswith(("non-free", "contrib")):
        return "not in Debian main"
    invariant = re.search(r"with (the|its) Invariant Sections? (being|is)|Invariant Sections? (are|being) \"",
                          copyright_text)
    if invariant:
        return "GFDL with invariant sections"
    if re.search(r"^License:.*(-NC|-ND)\b", copyright_text, flags=re.M):
        return "a non-commercial or no-derivatives licence"
    return None


def read_deb(deb):
    """{path: bytes} of the files with prose, and the copyright file's text."""
    files, copyright_text = {}, ""
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(deb)], stdout=subprocess.PIPE) as process:
        with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
            for member in tar:
                if not member.isfile() or member.size > (64 << 20):
                    continue
                path = member.name.lstrip(".")
                if path.startswith("/usr/share/doc/") and path.endswith("/copyright"):
                    copyright_text = extract.decode(tar.extractfile(member).read())
                elif extract.reader_for(path) or path.endswith((".index", ".bzs", ".zdx")):
                    files[path] = tar.extractfile(member).read()
    return files, copyright_text


def page_paragraphs(path, data, files):
    reader = extract.reader_for(path)
    if reader == "dict":
        name = path.rsplit("/", 1)[1].split(".")[0]
        index = files.get(path.replace(".dict.dz", ".index"), b"")
        return [p for p in extract.from_dict(index, extract.unpacked(path, data), name) if len(p) > 40]
    if reader == "sword":
        is_lexicon = path.endswith(".zdt")
        index = files.get(path[:-3] + ("zdx" if is_lexicon else "bzs"), b"")
        return extract.clean(extract.from_sword(index, data, 8 if is_lexicon else 12))
    data = extract.unpacked(path, data)
    return extract.clean(extract.READERS[reader](data), reader in extract.SPOKEN)


def natural(path):
    """Sort key: chapter 2 before chapter 10."""
    return [int(t) if t.isdigit() else t for t in re.split(r"(\d+)", path)]


def extract_package(deb, cache):
    """Writes the package's pages and facts to `cache`, under the archive's own checksum."""
    digest = hashlib.sha256(deb.read_bytes()).hexdigest()
    kept = cache / f"{deb.name}.{digest[:12]}.json"
    if kept.exists():
        return
    fields = subprocess.run(["dpkg-deb", "-f", str(deb), "Package", "Version", "Section"], check=True,
                            capture_output=True, text=True).stdout
    facts = dict(line.split(": ", 1) for line in fields.strip().split("\n"))
    files, copyright_text = read_deb(deb)
    pages, total = [], 0
    for path in sorted((p for p in files if extract.reader_for(p)), key=lambda p: (natural(p), p)):
        if total > (48 << 20):
            break
        try:
            paragraphs = page_paragraphs(path, files[path], files)
        except (OSError, EOFError, ValueError, KeyError, zlib.error) as problem:
            log(f"{deb.name}: {path}: {problem}")
            continue
        size = sum(map(len, paragraphs))
        if size >= LEAST_PAGE_BYTES:
            pages.append([path, paragraphs])
            total += size
    result = {"version": facts["Version"], "sha256": digest, "licences": licence_names(facts["Package"], copyright_text),
              "refused": refusal(facts.get("Section", ""), copyright_text), "pages": pages}
    kept.write_text(json.dumps(result, ensure_ascii=False), encoding="utf-8")


# --- duplicates ---------------------------------------------------------------------------------

_word_hash = {}


def word_hashes(text):
    out = []
    for word in re.findall(r"[a-z0-9']+", text.lower()):
        value = _word_hash.get(word)
        if value is None:
            value = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest(), "little")
            _word_hash[word] = value
        out.append(value)
    return np.array(out, dtype=np.uint64)


def gram_hashes(words, length):
    """A 64-bit hash of each run of `length` words."""
    if len(words) < length:
        return np.empty(0, dtype=np.uint64)
    total = np.zeros(len(words) - length + 1, dtype=np.uint64)
    factor = 1
    for j in range(length):
        total += words[j:len(words) - length + 1 + j] * np.uint64(factor)
        factor = factor * 0x9E3779B97F4A7C15 % (1 << 64)
    total ^= total >> np.uint64(29)
    return total * np.uint64(0xBF58476D1CE4E5B9)


def sketch(text):
    """One-permutation MinHash: the least shingle hash in each of SKETCH_BINS bins."""
    grams = gram_hashes(word_hashes(text), SHINGLE_WORDS)
    least = np.full(SKETCH_BINS, np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(least, (grams >> np.uint64(58)).astype(np.int64), grams)
    return least


class NearDuplicates:
    """Pages seen so far; `is_copy` answers for the next one and remembers it."""

    def __init__(self):
        self._sketches, self._buckets = [], {}

    def is_copy(self, mine):
        width = SKETCH_BINS // SKETCH_BANDS
        keys = [(b, mine[b * width:(b + 1) * width].tobytes()) for b in range(SKETCH_BANDS)]
        others = {i for key in keys for i in self._buckets.get(key, ())}
        if any(np.mean(self._sketches[i] == mine) >= NEAR_DUPLICATE for i in others):
            return True
        for key in keys:
            bucket = self._buckets.setdefault(key, [])
            if len(bucket) < 20:
                bucket.append(len(self._sketches))
        self._sketches.append(mine)
        return False


def paragraph_key(paragraph):
    """Equal for paragraphs that differ in case, digits and punctuation only."""
    letters = re.sub(r"[^a-z]+", " ", paragraph.lower())
    return hashlib.blake2b(letters.encode(), digest_size=8).digest()


def prepared(path):
    """A package's facts, and each page's paragraphs, their keys and the page's sketch."""
    got = json.loads(path.read_bytes())
    pages = []
    for _, paragraphs in got.pop("pages"):
        text = "\n".join(paragraphs)
        pages.append((paragraphs, [paragraph_key(p) for p in paragraphs],
                      sketch(text) if len(text) > 1000 else None))
    return got, pages


def documents_of(package, kind, pages, seen, near, counts):
    """(name, paragraphs) of each document of a package, copies removed."""
    documents, current, size, taken = [], [], 0, 0

    def close():
        nonlocal current, size
        if current:
            documents.append([f"{package}/{len(documents):04d}", current])
        current, size = [], 0

    for paragraphs, keys, page_sketch in pages:
        if page_sketch is not None and near.is_copy(page_sketch):
            counts["near-duplicate pages"] += 1
            continue
        fresh = []
        for p, key in zip(paragraphs, keys):
            if len(p) > 60 or kind in ("stories", "dictionary"):
                if key in seen:
                    counts["repeated paragraphs"] += 1
                    continue
                seen.add(key)
            fresh.append(p)
        # A heading whose text was dropped introduces nothing.
        fresh = [p for i, p in enumerate(fresh) if len(p) > 70 or p[-1:] in ".!?:;\"'”’)" or
                 (i + 1 < len(fresh) and len(fresh[i + 1]) > 70)]
        text = "\n\n".join(fresh)
        if len(text) < LEAST_FRESH_BYTES:
            counts["pages left empty"] += 1
            continue
        if taken + len(text) > CAP_BYTES[kind]:
            counts["pages over the cap"] += 1
            break
        taken += len(text)
        for p in fresh:
            current.append(p)
            size += len(p) + 2
            if size >= MOST_DOCUMENT_BYTES:
                close()
        if size >= LEAST_DOCUMENT_BYTES:
            close()
    close()
    return documents


# --- split and leakage --------------------------------------------------------------------------

def split_of(package, name):
    if package in HELD_OUT:
        return "test"
    draw = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=4).digest(), "little") % 1000
    if draw < TEST_PER_MILLE:
        return "test"
    return "validation" if draw < TEST_PER_MILLE + VALIDATION_PER_MILLE else "train"


_wanted = None  # the held-out text's sequences, sorted; set before the worker processes start


def places_in_wanted(text):
    """Which of the held-out 13-word sequences a training document contains, as indices."""
    mine = gram_hashes(word_hashes(text), LEAK_WORDS)
    at = np.minimum(np.searchsorted(_wanted, mine), len(_wanted) - 1)
    return np.unique(at[_wanted[at] == mine])


def remove_leaks(documents, jobs):
    """Drops held-out paragraphs that the training part nearly contains; returns the figures."""
    global _wanted
    held = [d for d in documents if d["split"] != "train"]
    grams = [gram_hashes(word_hashes(p), LEAK_WORDS) for d in held for p in d["paragraphs"]]
    _wanted = np.unique(np.concatenate(grams))
    hit = np.zeros(len(_wanted), dtype=bool)
    texts = ["\n".join(d["paragraphs"]) for d in documents if d["split"] == "train"]
    with multiprocessing.get_context("fork").Pool(jobs) as pool:
        for places in pool.imap_unordered(places_in_wanted, texts, chunksize=8):
            hit[places] = True
    dropped = total = total_hit = 0
    index = 0
    for d in held:
        kept = []
        for p in d["paragraphs"]:
            mine = grams[index]
            index += 1
            common = int(hit[np.searchsorted(_wanted, mine)].sum())
            if len(mine) and common > LEAK_SHARE * len(mine):
                dropped += 1
                continue
            total += len(mine)
            total_hit += common
            kept.append(p)
        d["paragraphs"] = kept
    return {"held-out paragraphs removed": dropped,
            "13-word sequences of the held-out text that the training text contains":
                round(total_hit / max(total, 1), 6)}


# --- dialogues from dictionaries ----------------------------------------------------------------

def dialogues(documents):
    """Question and answer pairs out of the training part's dictionary entries, for the chat form."""
    pairs = []
    for d in documents:
        if d["split"] != "train" or d["class"] != "dictionary":
            continue
        package = d["name"].split("/")[0]
        for p in d["paragraphs"]:
            head, _, text = p.partition(": ")
            head = head.strip().rstrip(",.;")
            first = re.split(r"(?<=[.;])\s", text)[0].strip(" ;,.")
            if not re.fullmatch(r"[A-Za-z][A-Za-z' -]{2,24}", head) or not 25 <= len(first) <= 260:
                continue
            if len(re.findall(r"[A-Za-z]+", first)) < 5 or re.search(r"[^\x20-\x7e]|[\[\]{}_=|\\:\"]", first):
                continue
            draw = int.from_bytes(hashlib.blake2b(p.encode(), digest_size=4).digest(), "little")
            pairs.append((draw, head, first, package))
    out = []
    for draw, head, text, package in sorted(pairs)[:CHAT_DIALOGUES]:
        is_noun = re.match(r"(a|an|the|any|one|some|someone|something|that) ", text, re.I)
        ask = ["What is {}?", "What does the word {} mean?", "Define {}.", "Tell me what {} means.",
               "Please explain {}.", "What do you know about {}?"]
        question = (ask[0] if is_noun and draw % 2 else ask[draw // 2 % len(ask)]).format(head)
        body = text[0].lower() + text[1:] if text[1:2].islower() or text[1:2] == " " else text
        if is_noun:
            answer = f"{head[0].upper() + head[1:]} is {body}."
        else:
            answer = f"The word {head} means {body}."
        out.append({"name": f"chat/{len(out):05d}", "class": "chat", "split": "train",
                    "turns": [["user", question], ["assistant", answer]]})
    return out


# --- main ---------------------------------------------------------------------------------------

def write_split(path, documents):
    digest, count, size = hashlib.sha256(), 0, 0
    with path.open("wb") as file:
        for d in documents:
            if "turns" in d:
                record = {"name": d["name"], "class": d["class"], "turns": d["turns"]}
                size += sum(len(t.encode()) for _, t in d["turns"])
            else:
                text = "\n\n".join(d["paragraphs"])
                if len(text) < LEAST_PAGE_BYTES:
                    continue
                record = {"name": d["name"], "class": d["class"], "text": text}
                size += len(text.encode())
            line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
            digest.update(line)
            file.write(line)
            count += 1
    return {"documents": count, "text_bytes": size, "sha256": digest.hexdigest()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--work", type=pathlib.Path, required=True, help="folder for downloads and results")
    parser.add_argument("--packages", type=pathlib.Path, default=HERE / "packages.txt")
    parser.add_argument("--manifest", type=pathlib.Path, default=HERE / "corpus.manifest.json")
    parser.add_argument("--offline", action="store_true",
                        help="take what DIR/debs and DIR/pages hold; packages without any are left out")
    parser.add_argument("--only-extract", action="store_true", help="extract the archives, then stop")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once")
    options = parser.parse_args()
    packages = read_packages(options.packages)
    debs, cache = options.work / "debs", options.work / "pages"
    cache.mkdir(parents=True, exist_ok=True)
    if not options.offline:
        download(packages, debs)
    archives = {name: deb_of(debs, name) for name in packages if deb_of(debs, name)}
    if options.offline:
        packages = {n: kind for n, kind in packages.items() if n in archives or pages_of(cache, n)}
    largest_first = sorted(archives.values(), key=lambda deb: -deb.stat().st_size)
    context = multiprocessing.get_context("fork")
    with context.Pool(options.jobs) as pool:
        pool.starmap(extract_package, [(deb, cache) for deb in largest_first], chunksize=1)
        if options.only_extract:
            return
        kept = [pages_of(cache, name) for name in packages]
        if None in kept:
            sys.exit(f"{debs}: no archive of package '{list(packages)[kept.index(None)]}'")
        prepared_packages = pool.map(prepared, kept, chunksize=1)
    seen, near = set(), NearDuplicates()
    counts = {"repeated paragraphs": 0, "pages left empty": 0, "near-duplicate pages": 0, "pages over the cap": 0}
    documents, facts = [], {}
    for (name, kind), (got, pages) in zip(packages.items(), prepared_packages):
        if got["refused"]:
            log(f"{name}: left out: {got['refused']}")
            continue
        mine = documents_of(name, kind, pages, seen, near, counts)
        size = sum(len(p.encode()) + 2 for _, ps in mine for p in ps)
        if not size:
            continue
        facts[name] = {"class": kind, "version": got["version"], "deb_sha256": got["sha256"],
                       "licences": got["licences"], "text_bytes": size}
        documents += [{"name": n, "class": kind, "split": split_of(name, n), "paragraphs": ps} for n, ps in mine]
    leak = remove_leaks(documents, options.jobs)
    documents += dialogues(documents)
    by_class = {}
    for f in facts.values():
        by_class[f["class"]] = by_class.get(f["class"], 0) + f["text_bytes"]
    manifest = {
        "what": "the corpus of the house model; made by tools/train/corpus.py",
        "splits": {s: write_split(options.work / f"{s}.jsonl", [d for d in documents if d["split"] == s])
                   for s in ("train", "validation", "test")},
        "text_bytes_by_class": by_class, "held_out_packages": sorted(HELD_OUT & set(facts)),
        "removed": counts, "leakage": leak, "packages": facts}
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    # One package a line keeps the file short and its diffs readable.
    text = re.sub(r'\{\n\s+("class".*?)\n\s+\}', lambda m: "{" + re.sub(r"\n\s+", " ", m.group(1)) + "}", text,
                  flags=re.S)
    options.manifest.write_text(text + "\n")
    log(json.dumps({k: manifest[k] for k in ("splits", "text_bytes_by_class", "removed", "leakage")}, indent=1))


if __name__ == "__main__":
    main()
