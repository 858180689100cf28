"""Turns the files of a Debian package into paragraphs of plain English prose.

Every function here is pure: bytes in, a list of paragraphs out. A paragraph is one line of text;
tags, markup, listings, tables, navigation and boilerplate are gone. `is_prose` is the one judge of
what counts as prose, so that every source format is held to the same standard.
"""
import bz2
import gzip
import html
import re
import struct
import zlib

# Words that English prose cannot do without, and that code, tables and other languages lack.
_FUNCTION_WORDS = frozenset(
    "the of and to a in is that it for as with was on be by this are or an at from not you have but"
    " which his he they we if can will all there their were when what so no has one do who would its"
    " any more other some than into may then these only also such must should your i my me him her"
    " she had been our us how up out about them could where each used use see does own".split())
_WORD = re.compile(r"[A-Za-z']+")
_SPACE = re.compile(r"\s+")
_SENTENCE_END = re.compile(r"[.!?:;…][\"'”’)\]]*$")
_BOILERPLATE = re.compile(
    r"copyright|all rights reserved|permission is (hereby )?granted|warrant(y|ies) of|"
    r"without (even the )?implied|free software foundation|redistribut|generated (on|by|from)|"
    r"last (modified|updated)|click here|cookies?\b.*browser|javascript (is|must)|"
    r"^(next|previous|up|home|contents|index|table of contents|chapter contents)\b.{0,40}$|"
    r"^(prev|notes?|tips?|caution|warning|important|see also|returns?|parameters?|example|usage|"
    r"synopsis|name):?$|original data (is available|was distributed)|"
    r"bug reports? to|report bugs|gnu general public license|\bISBN\b", re.I)


def is_prose(paragraph, least_words=8):
    """True if the paragraph reads as English prose: words, function words, a sentence's end."""
    words = _WORD.findall(paragraph)
    if len(words) < least_words or len(paragraph) > 20000:
        return False
    letters = sum(map(len, words))
    if letters < 0.70 * len(paragraph):
        return False
    common = sum(1 for w in words if w.lower() in _FUNCTION_WORDS)
    if common < 0.18 * len(words):
        return False
    return bool(_SENTENCE_END.search(paragraph)) or len(words) > 40


def _is_heading(paragraph):
    if len(paragraph) > 70 or not paragraph[:1].isupper():
        return False
    words = _WORD.findall(paragraph)
    return 1 <= len(words) <= 9 and sum(map(len, words)) >= 0.78 * len(paragraph)


def clean(paragraphs, spoken=False):
    """Keeps the prose and the headings that introduce it. `spoken`: short lines of dialogue too."""
    kept, heading = [], None
    for raw in paragraphs:
        p = _SPACE.sub(" ", raw.replace("\u00ad", "")).strip(" ¶#*|·•-–—")
        p = re.sub(r"\{([^{}]{1,60})\}", r"\1", p)
        if not p:
            continue
        if is_prose(p, 2 if spoken else 8) or (
                4 <= len(p) < 60 and p[-1:] in ".?!" and is_prose(p, 4)):
            if len(p) < 400 and _BOILERPLATE.search(p):
                continue
            if heading and (not kept or kept[-1] != heading):
                kept.append(heading)
            heading = None
            kept.append(p)
        elif _is_heading(p) and not _BOILERPLATE.search(p):
            heading = p
    return kept


def decode(data):
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


# --- HTML -------------------------------------------------------------------------------------

_DROP = re.compile(
    r"<!--.*?-->|<(script|style|head|nav|footer|pre|svg|math|select|form|button|noscript|textarea)"
    r"\b.*?</\1\s*>", re.S | re.I)
_MAIN_START = re.compile(
    r"<main\b[^>]*>|<article\b[^>]*>|<div[^>]+(role=.main.|class=.(body|contents?|mw-content-ltr"
    r"|section|document).)[^>]*>", re.I)
_MAIN_END = re.compile(
    r"</main>|</article>|<div[^>]+(class|id)=.(sphinxsidebar|related|footer|navfooter|bottomsource"
    r"|printfooter|toc)\b", re.I)
_BLOCK = re.compile(
    r"</?(p|div|li|ul|ol|dl|dd|dt|h[1-6]|table|tr|td|th|blockquote|section|br\s*/?\s*>\s*<br|hr|"
    r"center|title|caption|figcaption|body|html|article|aside|details|summary)\b[^>]*>", re.I)
_TAG = re.compile(r"<[^>]{0,2000}>")
_CODE_BLOCK = re.compile(
    r"<(div|table|ol)[^>]*class=.[^\"'>]*(highlight|listing|programlisting|fragment|codeblock|"
    r"memproto|indextable|toctree|breadcrumb|navheader|screen)\b[^>]*>.*?</\1>", re.S | re.I)


def from_html(data):
    text = decode(data)
    text = _DROP.sub(" ", text)
    start = _MAIN_START.search(text)
    if start:
        end = _MAIN_END.search(text, start.end())
        body = text[start.end():end.start() if end else len(text)]
        text = body if len(body) > 500 else text
    text = _CODE_BLOCK.sub("\n\n", text)
    text = _SPACE.sub(" ", text)
    text = _BLOCK.sub("\n", text)
    text = html.unescape(_TAG.sub("", text))
    return text.split("\n")


# --- roff manual pages --------------------------------------------------------------------------

_ROFF_CHARS = {"(aq": "'", "(dq": '"', "(em": "—", "(en": "–", "(lq": "“", "(rq": "”", "(oq": "‘",
               "(cq": "’", "(bu": "", "(co": "©", "(mu": "×", "(->": "→", "(ti": "~", "(ha": "^",
               "(ga": "`", "(bs": "\\", "(rs": "\\", "(sl": "/", "(ul": "_", "(*(": ""}
_ROFF_ESCAPE = re.compile(r"\\(f(\[[^\]]*\]|\(..|.)|s[-+]?\d+|\*?\(..|\*\[[^\]]*\]|\[[^\]]*\]|"
                          r"[hvwoNXZDl]'[^']*'|[-&|^%/,cdu:~0 e])")


def _unroff(match):
    body = match.group(1)
    if body in _ROFF_CHARS:
        return _ROFF_CHARS[body]
    return {"-": "-", "~": " ", "0": " ", " ": " ", "e": "\\"}.get(body, "")


def _roff_words(rest):
    return [a or b for a, b in re.findall(r'"([^"]*)"|(\S+)', rest)]


def from_man(data):
    paragraphs, line_parts, literal, section = [], [], False, ""

    def flush():
        if line_parts:
            paragraphs.append(" ".join(line_parts))
            line_parts.clear()

    for line in decode(data).split("\n"):
        line = re.sub(r'\\".*', "", line)
        if not line.strip():
            flush()
            continue
        if line[0] not in ".'":
            if not literal and not (line[0] in " \t" and not line_parts):
                line_parts.append(_ROFF_ESCAPE.sub(_unroff, line).strip())
            continue
        fields = line[1:].lstrip().split(None, 1)
        if not fields:
            continue
        macro, rest = fields[0], fields[1] if len(fields) > 1 else ""
        if macro in ("nf", "EX", "Bd", "TS", "PS", "EQ", "de", "ig"):
            flush()
            literal = True
        elif macro in ("fi", "EE", "Ed", "TE", "PE", "EN", ".") or line.startswith(".."):
            literal = False
        elif macro in ("SH", "SS", "Sh", "Ss"):
            flush()
            literal = False
            section = " ".join(_roff_words(_ROFF_ESCAPE.sub(_unroff, rest)))
            # Manual pages shout their headings; prose does not.
            paragraphs.append(section.capitalize() if section.isupper() else section)
        elif macro in ("PP", "P", "LP", "TP", "IP", "HP", "Pp", "It", "sp", "br", "RS", "RE", "TQ",
                       "Bl", "El", "Sp"):
            flush()
            if macro == "TP" or macro == "It":
                continue
        elif literal:
            continue
        elif macro in ("B", "I", "SM", "SB", "R"):
            line_parts.append(_ROFF_ESCAPE.sub(_unroff, " ".join(_roff_words(rest))))
        elif macro in ("BR", "BI", "IR", "IB", "RB", "RI"):
            line_parts.append(_ROFF_ESCAPE.sub(_unroff, "".join(_roff_words(rest))))
        elif re.fullmatch(r"[A-Z][a-z]", macro) and macro not in ("Dd", "Dt", "Os", "Nd", "Fd", "In"):
            words = [w for w in _roff_words(rest) if not re.fullmatch(r"[A-Z][a-z]|Ns|Ta", w)]
            line_parts.append(re.sub(r" ([.,;:)])", r"\1", " ".join(words)))
    flush()
    return paragraphs


# --- info and plain text ------------------------------------------------------------------------

def from_text(data, indent_is_code=4):
    """Paragraphs at blank lines; more deeply indented ones than `indent_is_code` are listings."""
    paragraphs, block = [], []
    for line in decode(data).replace("\f", "\n\n").split("\n") + [""]:
        if line.strip():
            block.append(line.expandtabs())
            continue
        if block:
            indent = min(len(l) - len(l.lstrip()) for l in block)
            if indent < indent_is_code or len(block) > 2 and indent <= 8:
                paragraphs.append(" ".join(l.strip() for l in block))
            block = []
    return paragraphs


def from_info(data):
    text = decode(data)
    text = re.sub(r"^\x1f\n.*$", "", text, flags=re.M)
    text = re.sub(r"^File: .*Node: .*$", "", text, flags=re.M)
    text = re.sub(r"^\* (Menu:|[^\n]*::?[^\n]*)$", "", text, flags=re.M)
    text = re.sub(r"^[*=\-.]{4,}$", "\n", text, flags=re.M)
    text = re.sub(r"\*[Nn]ote ([^:\n]*(\n[^:\n]*)?)::", r"\1", text)
    return from_text(text.encode(), 5)


def from_markdown(data):
    text = decode(data)
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.S | re.M)
    text = re.sub(r"^(#+|=+|-+|\.\.)\s*$", "\n", text, flags=re.M)
    text = re.sub(r"^#+ *(.*)$", r"\n\1\n", text, flags=re.M)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r":[a-z:]+:`~?([^`<]*)(<[^>]*>)?`", r"\1", text)
    text = re.sub(r"``?([^`]*)``?_*", r"\1", text)
    text = re.sub(r"\*\*?([^*\n]+)\*\*?", r"\1", text)
    text = re.sub(r"^[=~^\-\"'`+*#]{3,}$", "\n", text, flags=re.M)
    text = re.sub(r"^\.\. .*$", "\n", text, flags=re.M)
    return from_text(text.encode(), 3)


def from_docbook(data):
    text = decode(data)
    text = re.sub(r"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[.*?\]\]>|<(programlisting|screen|literallayout|"
                  r"info|bookinfo|articleinfo|synopsis|code|keywordset|credit|license)\b[^>]*>.*?</\1>",
                  " ", text, flags=re.S)
    text = _SPACE.sub(" ", text)
    text = re.sub(r"</?(para|simpara|p|title|subtitle|item|listitem|section|sect\d|chapter|note|tip|"
                  r"page|steps|terms|list|entry|row|term|caption|desc)\b[^>]*>", "\n", text)
    return html.unescape(re.sub(r"&(?!amp;|lt;|gt;|quot;)[\w.-]+;", " ", _TAG.sub("", text))).split("\n")


# --- dictionaries in dictd's format -------------------------------------------------------------

_B64 = {c: i for i, c in enumerate(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")}


def _number(text):
    value = 0
    for c in text:
        value = value * 64 + _B64[c]
    return value


def dict_entries(index, body):
    """(headword, raw entry) of a dictd dictionary, in the order of the file."""
    seen = {}
    for line in index.decode("utf-8", "replace").split("\n"):
        fields = line.split("\t")
        if len(fields) >= 3 and not fields[0].startswith("00"):
            seen.setdefault((_number(fields[1]), _number(fields[2])), fields[0])
    for (offset, size), word in sorted(seen.items()):
        yield word, body[offset:offset + size].decode("utf-8", "replace")


def from_dict(index, body, name):
    out = []
    for word, entry in dict_entries(index, body):
        lines = entry.split("\n")
        head = lines[0].strip()
        text = " ".join(l.strip() for l in lines[1:] if l.strip())
        if name == "wn":
            out += _wordnet(word, text)
            continue
        if name == "gcide":
            head = re.split(r"\s\\", head)[0].strip() or word
            text = re.sub(r"\[[^\]]*\]|\\[^\\]*\\", " ", text)
            text = re.sub(r"\b(n|a|adv|v\. t|v\. i|imp|p\. p|pl|prep|conj|interj)\.(?=\s)", " ", text, 1)
        text = re.sub(r"[{}]", "", text)
        text = re.sub(r"<([^>]*)>|\(?\d{4}-\d\d-\d\d\)?", " ", text)
        text = _SPACE.sub(" ", text).strip(" ,;:")
        if len(text) > 40:
            # Some dictionaries have no line of their own for the headword.
            out.append(f"{head} {text}" if len(head.split()) > 5 else f"{head}: {text}")
    return out


def _wordnet(word, text):
    out = []
    for sense in re.split(r"\s(?=\d+: |(?:n|v|adj|adv) \d*:? )", " " + text):
        gloss = re.sub(r"^\s*(n|v|adj|adv)?\s*\d*:?\s*", "", sense)
        gloss = re.sub(r"\[(syn|ant|also):[^\]]*\]", "", gloss).replace("{", "").replace("}", "").strip()
        if len(gloss) > 30:
            out.append(f"{word}: {gloss}.")
    return out


# --- SWORD modules ------------------------------------------------------------------------------

def from_sword(index, body, entry_size=12):
    """The compressed blocks of a zText, zCom or zLD module, in order, markup removed."""
    out = []
    for at in range(0, len(index) - entry_size + 1, entry_size):
        offset, size = struct.unpack_from("<II", index, at)
        try:
            text = decode(zlib.decompress(body[offset:offset + size]))
        except zlib.error:
            continue
        text = re.sub(r"<note\b.*?</note>|<RF>.*?<Rf>", "", text, flags=re.S)
        text = re.sub(r"<(/p|p|br|lb|div|/div|verse|title|/title|CM|hi type=.b.)[^>]*>|\x00", "\n", text)
        out += html.unescape(_TAG.sub("", text)).split("\n")
    return out


# --- the texts of games -------------------------------------------------------------------------

def from_wml(data):
    """Wesnoth's markup: the translatable strings that are spoken or told."""
    text = decode(data)
    found = re.findall(r'\b(?:message|story|description|text|part_text|note|summary)\s*=\s*_\s*'
                       r'((?:"(?:[^"]|"")*"\s*\+?\s*_?\s*)+)', text)
    parts = [" ".join(re.findall(r'"((?:[^"]|"")*)"', f)).replace('""', '"') for f in found]
    return [re.sub(r"<[^>]*>|\{[^}]*\}", "", p) for q in parts for p in q.split("\n\n")]


def from_lua(data):
    text = decode(data)
    found = re.findall(r'\b_\(?\s*\[\[(.*?)\]\]|\b_p?\(?\s*"((?:[^"\\]|\\.)*)"', text, flags=re.S)
    return [re.sub(r"#\w|\\n", " ", a or b).replace('\\"', '"') for a, b in found]


def from_backtick(data):
    """Endless Sky's data files: conversations and descriptions stand in backticks or quotes."""
    return re.findall(r"^\s+(?:description |conversation |\")?`([^`\n]+)`", decode(data), flags=re.M) + \
        re.findall(r'^\s*description "([^"\n]+)"', decode(data), flags=re.M)


def from_strings(data):
    """Quoted translatable strings of other games: _("..." "...")."""
    found = re.findall(r'_\(((?:\s*"(?:[^"\\]|\\.)*"\s*\\?)+)\)', decode(data))
    return [p for f in found for p in re.split(
        r"\\n\s*\\n", "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', f)).replace('\\"', '"'))]


def from_stringtable(data):
    text = re.sub(r"\[\[[^\]]*\]\]|<[^>]*>|%\d*%", " ", decode(data))
    return [p for t in re.findall(r"'''(.*?)'''", text, flags=re.S) for p in t.split("\n\n")]


def from_tagged_lines(data, keys=rb"msg|him|her|you|title|quest_text|desc|desc-c|D|text|powers_desc"):
    """KEY:text or KEY=text lines (Angband, Flare); consecutive lines of one key are one paragraph."""
    out, last = [], None
    for line in data.split(b"\n"):
        m = re.match(rb"\s*(" + keys + rb")[:=](.*)", line)
        if not m:
            last = None
            continue
        text = decode(m.group(2)).strip()
        if last == m.group(1) and last in (b"D", b"desc", b"text"):
            out[-1] += " " + text
        else:
            out.append(text)
        last = m.group(1)
    return out


def from_fortune(data):
    return [p.replace("\n", " ") for p in decode(data).split("\n%\n")]


def from_crawl(data):
    """Dungeon Crawl's descriptions: entries between %%%% lines, each a key, a blank line, the text."""
    out = []
    for entry in decode(data).split("%%%%"):
        lines = [l for l in entry.strip().split("\n") if not l.startswith("#")]
        text = "\n".join(lines[1:])
        if "@" not in text and "w:" not in text:
            out += [p.replace("\n", " ") for p in text.split("\n\n")]
    return out


# --- R's serialized character vectors -----------------------------------------------------------

def from_rdb(data):
    """The first object of an R lazy-load database (of janeaustenr: "Emma"), a vector of lines."""
    # Four bytes with the plain size, then a zlib stream; the next object follows at once.
    return _r_strings(zlib.decompressobj().decompress(data[4:])) if data[4:5] == b"x" else []


def _r_strings(block):
    lines = []
    for m in re.finditer(rb"\x00[\x00\x04][\x00-\xff]\x09", block):
        if m.end() + 4 > len(block):
            break
        size = struct.unpack_from(">i", block, m.end())[0]
        if 0 <= size < 4096:
            lines.append(decode(block[m.end() + 4:m.end() + 4 + size]))
    return from_text("\n".join(lines).encode(), 80)


# --- which reader for which file ----------------------------------------------------------------

_LANGUAGE_DIR = re.compile(
    r"/(af|ar|bg|bn|bs|ca|cs|da|de|el|eo|es|et|eu|fa|fi|fr|ga|gl|he|hi|hr|hu|id|it|ja|ka|ko|lt|lv|mk|"
    r"ml|nb|nl|nn|no|pa|pl|pt|ro|ru|sk|sl|sr|sv|ta|te|tr|uk|vi|zh)([-_@.][A-Za-z]+)*/|"
    r"\.(ar|bg|ca|cs|da|de|el|es|et|eu|fa|fi|fr|gl|he|hr|hu|id|it|ja|ko|lt|nb|nl|pl|pt|pt-br|ro|ru|sk|"
    r"sl|sr|sv|tr|uk|vi|zh|zh-cn|zh-tw)\.(html?|txt|xml)", re.I)
_SKIP = re.compile(
    r"(changelog|copyright|news|authors|todo|thanks|contributors|licen[cs]e|copying|genindex|"
    r"search\.html|py-modindex|objects\.inv|_sources/|_modules/|/examples?/|index-all|allclasses|"
    r"gpl|fdl|/tests?/|/api/|doxygen|/apidoc|install\.|hierarchy|_source\.html|-members\.html|"
    r"whatsnew|release[-_]?notes|/releases/|/changes)", re.I)


def reader_for(path):
    """The reader's name for a path inside a package, or None if the file holds no prose."""
    name = path[:-3] if path.endswith(".gz") else path
    low = name.lower()
    if _LANGUAGE_DIR.search(path) or low.endswith((".png", ".jpg", ".svg", ".css", ".js")):
        return None
    if "/wesnoth/" in path:
        return "wml" if low.endswith(".cfg") else None
    if "/endless-sky" in path and low.endswith(".txt"):
        return "backtick"
    if "freeorion" in path and "stringtables/en." in path:
        return "stringtable"
    if "/freeciv/" in path and low.endswith((".txt", ".ruleset")):
        return "strings"
    if "/crawl" in path and "/dat/" in path:
        return "crawl" if "/descript/" in path and low.endswith(".txt") else None
    if "/angband/" in path and low.endswith(".txt") or "/flare" in path and low.endswith(".txt"):
        return "tagged_lines"
    if low.endswith(".lua") and ("naev" in path or "widelands" in path or "fillets" in path):
        return "lua"
    if "/naev/" in path and low.endswith(".xml"):
        return "docbook"
    if "/games/fortunes/" in path and "." not in path.rsplit("/", 1)[1]:
        return "fortune"
    if low.endswith(".dict.dz"):
        return "dict"
    if low.endswith(("/ot.bzz", "/nt.bzz", "/dict.zdt")):
        return "sword"
    if low.endswith("rdata.rdb"):
        return "rdb"
    if "/man/man" in path and re.search(r"/man/man\w+/[^/]+\.\d\w*$", name):
        return "man"
    if _SKIP.search(path.rsplit("/doc/", 1)[-1]):
        return None
    if re.search(r"/info/[^/]+\.info(-\d+)?$", name):
        return "info"
    if low.endswith("index.cache.bz2"):
        return "cache"
    if "/skycultures/" in path:
        return "html" if low.endswith((".en.utf8", "/description.md")) else None
    if low.endswith((".html", ".htm", ".xhtml", ".shtml", ".html.en")):
        return "html"
    if low.endswith((".page", ".docbook")) or ("/help/" in path and low.endswith(".xml")):
        return "docbook"
    if low.endswith((".md", ".rst", ".markdown")):
        return "markdown"
    if low.endswith((".txt", ".text")) and "/doc/" in path or path.endswith("/dasher/training_english_GB.txt"):
        return "text"
    return None


SPOKEN = {"wml", "lua", "backtick"}
READERS = {"html": from_html, "man": from_man, "text": from_text, "info": from_info,
           "markdown": from_markdown, "docbook": from_docbook, "wml": from_wml, "lua": from_lua,
           "backtick": from_backtick, "strings": from_strings, "stringtable": from_stringtable,
           "tagged_lines": from_tagged_lines, "fortune": from_fortune, "crawl": from_crawl, "rdb": from_rdb,
           "cache": lambda data: from_html(bz2.decompress(data))}


def unpacked(path, data):
    return gzip.decompress(data) if path.endswith((".gz", ".dz")) else data
