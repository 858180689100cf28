#!/usr/bin/env bash
# Formats every source with clang-format 14 (Debian 12's), or with --check only says what differs.
set -euo pipefail
cd "$(dirname "$0")/.."
tool=$(command -v clang-format-14 || command -v clang-format || true)
[ -n "$tool" ] || { echo "format: clang-format-14 is not installed; ./run setup test" >&2; exit 3; }
mapfile -t files < <(git ls-files --cached --others --exclude-standard 'src/*.cpp' 'src/*.hpp')
if [ "${1:-}" = --check ]; then
  "$tool" --dry-run -Werror "${files[@]}" && echo "format: clean"
else
  "$tool" -i "${files[@]}"
fi
