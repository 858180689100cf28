#!/usr/bin/env python3
"""Checks that every include obeys the module table in CMakeLists.txt.

A module may include itself and the modules its line names, the table must have no cycle, and some
third-party headers have one home. Prints each offence as FILE:LINE: text and exits 1.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "prony"

# Third-party header prefix -> where it may be included (a module, or one file).
HOMES = {
    "boost/": "net",
    "openssl/": "net",
    "CLI/": "cli/flags.cpp",
    "spdlog/": "core",
    "yaml-cpp/": "catalog",
    "simdjson": "load",
    "immintrin.h": "kernels",
}


def read_table():
    text = (ROOT / "CMakeLists.txt").read_text()
    table = {}
    for match in re.finditer(r"^prony_module\((\w+)([^)]*)\)", text, re.M):
        words = match.group(2).split()
        uses = []
        for word in words[words.index("USES") + 1:] if "USES" in words else []:
            if word == "LIBS":
                break
            uses.append(word)
        table[match.group(1)] = uses
    return table


def find_cycle(table):
    done, path = set(), []

    def visit(module):
        if module in path:
            return path[path.index(module):] + [module]
        if module in done:
            return None
        path.append(module)
        for used in table.get(module, []):
            cycle = visit(used)
            if cycle:
                return cycle
        path.pop()
        done.add(module)
        return None

    for module in table:
        cycle = visit(module)
        if cycle:
            return cycle
    return None


def check_file(path, table):
    module = path.relative_to(SOURCE).parts[0]
    allowed = set(table) | {"cli"} if module == "cli" else {module, *table.get(module, [])}
    if path.name.endswith(("_test.cpp", "_bench.cpp")):
        allowed.add("testing")
    relative = path.relative_to(SOURCE).as_posix()
    for number, line in enumerate(path.read_text().splitlines(), 1):
        include = re.match(r'\s*#\s*include\s+["<]([^">]+)[">]', line)
        if not include:
            continue
        header = include.group(1)
        where = f"{path.relative_to(ROOT)}:{number}"
        if header.startswith("prony/") and header != "prony/version.hpp":
            used = header.split("/")[1]
            if used not in allowed:
                yield f"{where}: {module} includes {used}, CMakeLists.txt allows " + \
                    (", ".join(sorted(allowed - {module})) or "nothing")
        for prefix, home in HOMES.items():
            if header.startswith(prefix) and module != home and relative != home:
                # Tests may reach for a library as an oracle.
                if not path.name.endswith("_test.cpp"):
                    yield f"{where}: {header} belongs to {home} only"


def main():
    table = read_table()
    offences = []
    cycle = find_cycle(table)
    if cycle:
        offences.append("CMakeLists.txt: cycle " + " -> ".join(cycle))
    for folder in sorted(p for p in SOURCE.iterdir() if p.is_dir()):
        if folder.name not in table and folder.name not in ("cli", "testing"):
            offences.append(f"src/prony/{folder.name}: no line prony_module({folder.name} ...)")
    for path in sorted([*SOURCE.rglob("*.hpp"), *SOURCE.rglob("*.cpp")]):
        offences += check_file(path, table)
    print("\n".join(offences) if offences else "layers: every include obeys the module table")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
