#!/usr/bin/env python3
"""Writes tests/data/jinja/goldens.json: what Python's jinja2 makes of the snippets and templates
beside it, set up as Hugging Face transformers sets it up. Needs python3-jinja2 (3.1).
A line of snippets.txt is a template in which \\n outside of braces is a line end."""
import json
import pathlib
import re

from jinja2.exceptions import TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

ROOT = pathlib.Path(__file__).resolve().parent.parent / "tests/data/jinja"
SNIPPET_CONTEXT = {"n": 3, "d": {"a": 1, "b": "two"}, "l": [{"k": 2}, {"k": 1}]}


def raise_exception(message):
    raise TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def environment():
    env = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    return env


def case(env, name, template, context):
    row = {"name": name, "template": template, "context": context}
    try:
        row["text"] = env.from_string(template).render(**context)
    except Exception as error:  # what it says differs; that it fails must not
        row["error"] = type(error).__name__
    return row


def unfold(line):
    parts = re.split(r"(\{\{.*?\}\}|\{%.*?%\})", line)
    return "".join(p if i % 2 else p.replace("\\n", "\n") for i, p in enumerate(parts))


def main():
    env = environment()
    rows = []
    for number, line in enumerate((ROOT / "snippets.txt").read_text().splitlines(), 1):
        rows.append(case(env, f"snippets.txt:{number}", unfold(line), SNIPPET_CONTEXT))
    conversations = json.loads((ROOT / "conversations.json").read_text())
    for path in sorted((ROOT / "templates").glob("*.jinja")):
        for name, context in conversations.items():
            full = {"bos_token": "<s>", "eos_token": "</s>", "add_generation_prompt": True, **context}
            row = case(env, f"{path.stem}/{name}", path.read_text(), full)
            row["template"] = path.name
            row["context"] = name
            rows.append(row)
    (ROOT / "goldens.json").write_text(json.dumps(rows, ensure_ascii=False, indent=0) + "\n")
    print(f"{len(rows)} cases, {sum('error' in r for r in rows)} of them refused")


main()
