#!/usr/bin/env bash
# Soak: MINUTES of STREAMS users against `prony mock` (first token after 50 ms, 100 tokens 10 ms
# apart), with the client's memory sampled every 2 s: soak.sh [MINUTES] [STREAMS] [--keep-files].
# Prints the slope of its resident memory after 2 minutes (of a run below 4, after its half: rows
# fill their budget in memory till then, and go to a file after it) and the peak, result included. Fails if memory would grow by more than 1 % an hour beyond what its own scatter explains and
# by more than 64 KiB a minute, or if any request fails. Needs 0.8 KiB of disk a request meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-30} streams=${2:-500} keep=${3:-}
prony=${PRONY:-build/release/prony}
out=build/soak
rm -rf "$out"
mkdir -p "$out"
"$prony" mock --port 0 --ttft-ms 50 --itl-ms 10 --tokens 100 2>"$out/mock.log" &
mock=$!
trap 'kill $mock 2>/dev/null || true' EXIT
for _ in $(seq 100); do grep -q 'listening on' "$out/mock.log" && break; sleep 0.1; done
url=$(sed -n 's/.*listening on //p' "$out/mock.log")
seconds=$(awk "BEGIN {print int($minutes * 60)}")
"$prony" bench --base-url "$url" --endpoint-type openai-chat --model mock --tokenizer byte \
  --max-concurrency "$streams" --request-rate inf --duration "$seconds" --input-len 64 \
  --output-len 100 --max-error-rate 0 --progress off --on-invalid warn --out "$out" \
  >"$out/table.txt" 2>"$out/bench.log" &
client=$!
started=$SECONDS
while kill -0 $client 2>/dev/null; do
  rss=$(awk '/^VmRSS/ {print $2}' /proc/$client/status 2>/dev/null || true)
  [ -n "$rss" ] && echo "$((SECONDS - started)) $rss" >>"$out/memory.txt"
  sleep 2
done
code=0
wait $client || code=$?
cat "$out/table.txt" "$out/bench.log"
verdict=0
awk -v end="$seconds" '
  BEGIN { from = end / 2; if (from > 120) from = 120 }
  { if ($2 > peak) peak = $2 }
  $1 >= from && $1 < end { n++; x[n] = $1; y[n] = $2; sx += $1; sy += $2 }
  END {
    if (n < 10) { print "soak: found " n " samples of memory, expected 10 or more"; exit 1 }
    for (i = 1; i <= n; i++) { sxx += (x[i] - sx / n) ^ 2; sxy += (x[i] - sx / n) * (y[i] - sy / n) }
    slope = sxy / sxx
    for (i = 1; i <= n; i++) rest += (y[i] - sy / n - slope * (x[i] - sx / n)) ^ 2
    scatter = 2 * sqrt(rest / (n - 2) / sxx)
    printf "soak: client memory %.1f MiB at %d s, %.1f MiB at %d s, slope %+.1f +- %.1f KiB a minute, peak %.1f MiB\n", \
      y[1] / 1024, x[1], y[n] / 1024, x[n], slope * 60, scatter * 60, peak / 1024
    grows = (slope - scatter) * 3600 > 0.01 * sy / n && slope * 60 > 64
    print grows ? "soak: FAILED, memory grows" : "soak: memory is flat"
    exit grows
  }' "$out/memory.txt" || verdict=1
[ "$keep" = --keep-files ] || rm -f "$out/requests.jsonl"
[ "$code" = 0 ] || echo "soak: FAILED, the bench ended with $code"
[ "$verdict" = 0 ] && [ "$code" = 0 ]
