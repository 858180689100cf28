#!/usr/bin/env bash
# The demo: the embedded engine on the CPU under 30 s of a real arrival trace, and a report of it.
# Lengths are scaled to the small model (1/8 of the prompts, 1/4 of the answers), and the record says
# so. A run that a busy host has spoilt says that too, and is still a demo: exit 0.
set -euo pipefail
cd "$(dirname "$0")/.."
out=out/demo
build/release/prony bench \
  --model dummy:demo --endpoint-type openai-chat \
  --dataset azure --trace-length 30 --input-scale 0.125 --output-scale 0.25 --max-total-len 2048 \
  --ignore-eos --usage continuous --save-detailed --num-warmups 2 --seed 1 \
  --goodput ttft:500 tpot:50 --on-invalid warn --label demo --out "$out"
echo
echo "left in $out: record.json, requests.jsonl, report.html (open it in a browser, it needs no network)"
