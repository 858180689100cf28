#!/usr/bin/env python3
"""Style as a test: bans with their replacement, headers that open with what they are, sizes.

Prints each offence as FILE:LINE: text and exits 1. Formatting itself is clang-format's (./run format).
"""
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent

# pattern, what to do instead, path prefixes where it is allowed
BANS = [
    (r"std::(cout|cerr|clog)\b", "return the text; only cli prints (fmt::print)", []),
    (r"\b(std::)?f?printf\(|\bfmt::print\(", "return the text; only cli prints",
     ["src/prony/cli/", "src/prony/core/check.cpp"]),
    (r"(?<![\w:.])(std::)?_?exit\(", "return an exit code; only cli ends the process", ["src/prony/cli/"]),
    (r"std::(chrono::)?(steady_clock|system_clock|high_resolution_clock)", "core::Clock", []),
    (r"\b(clock_gettime|gettimeofday)\(", "core::monotonic_ns()", ["src/prony/core/clock.cpp"]),
    (r"\bgetenv\(", "core::environment_variable()", ["src/prony/core/system.cpp"]),
    (r"std::(random_device|mt19937\w*|default_random_engine|\w+_distribution\b)", "core::Rng", []),
    (r"\b(std::)?s?rand\(", "core::Rng", []),
    (r"(?<![\w_])assert\(", "PRONY_CHECK", []),
    (r"^\s*throw\b", "return an Error (core/result.hpp)", []),
    (r"\bco_(await|yield|return)\b", "a state machine on callbacks (g++ 12 miscompiles coroutines)", []),
    (r"\b(TODO|FIXME|XXX)\b", "an issue, or the code itself", []),
    (r"#\s*(if|ifdef|ifndef)\s+.*(DEBUG|NDEBUG)", "one behaviour in every build", []),
    (r"-march=native", "dispatch on feature bits", []),
    (r"std::(stoi|stol|stod|atoi)\b", "std::from_chars with an Error", []),
]
TESTS_MAY = {"return the text; only cli prints", "return the text; only cli prints (fmt::print)",
             "std::from_chars with an Error"}

MAX_LINES = 600          # of a source; a room with one purpose
MAX_COMMAND_LINES = 150  # of cli/<command>.cpp: reads as the list of what it does
MAX_COLUMNS = 100
MAX_TREE_BYTES = 40 << 20
MAX_ARCHITECTURE_LINES = 200
CLI_HELPERS = {"flags.cpp"}


def tracked_files():
    out = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others",
                          "--exclude-standard"], capture_output=True, check=True).stdout
    return [ROOT / name for name in out.decode().split("\0") if name and (ROOT / name).is_file()]


def strip_comment(line):
    """The code of a line: string contents and // comments blanked."""
    line = re.sub(r'"(\\.|[^"\\])*"', '""', line)
    return re.sub(r"//.*", "", line)


def check_source(path, name):
    lines = path.read_text().splitlines()
    if path.suffix == ".hpp":
        opening = 0
        while opening < len(lines) and lines[opening].startswith("//"):
            opening += 1
        if opening < 2:
            yield f"{name}:1: a header opens with what it is and its thread safety, two lines or more"
        if "#pragma once" not in lines:
            yield f"{name}:1: no #pragma once"
        if not any("hread safety" in line for line in lines):
            yield f"{name}:1: says nothing about thread safety"
    limit = MAX_COMMAND_LINES if name.startswith("src/prony/cli/") and path.suffix == ".cpp" \
        and path.name not in CLI_HELPERS else MAX_LINES
    if len(lines) > limit:
        yield f"{name}:1: {len(lines)} lines, at most {limit}"
    is_test = path.name.endswith(("_test.cpp", "_bench.cpp", "_fuzz.cpp"))
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield f"{name}:{number}: {len(line)} columns, at most {MAX_COLUMNS}"
        code = strip_comment(line)
        for pattern, instead, allowed in BANS:
            if any(name.startswith(prefix) for prefix in allowed):
                continue
            if is_test and instead in TESTS_MAY:
                continue
            if re.search(pattern, code):
                yield f"{name}:{number}: '{line.strip()[:60]}': use {instead}"


def main():
    offences, total = [], 0
    for path in tracked_files():
        name = path.relative_to(ROOT).as_posix()
        total += path.stat().st_size
        if name.startswith("src/prony/") and path.suffix in (".cpp", ".hpp"):
            offences += check_source(path, name)
    if total > MAX_TREE_BYTES:
        offences.append(f"working tree: {total} bytes, at most {MAX_TREE_BYTES}")
    architecture = ROOT / "ARCHITECTURE.md"
    if architecture.exists() and len(architecture.read_text().splitlines()) > MAX_ARCHITECTURE_LINES:
        offences.append(f"ARCHITECTURE.md: more than {MAX_ARCHITECTURE_LINES} lines")
    print("\n".join(offences) if offences else "lint: clean")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
