#!/usr/bin/env bash
# Runs every micro benchmark of build/release; each prints its ceiling beside its speed.
set -euo pipefail
cd "$(dirname "$0")/.."
shopt -s nullglob
for bench in build/release/prony_*_bench; do
  echo "== ${bench##*/}"
  "$bench" --benchmark_min_time=0.2 "$@"
done
