#!/usr/bin/env bash
# Soak: MINUTES of 500 streams against `prony mock`, with the client's memory watched. Fails if it
# grows by more than 10 % after the first fifth, or if any request fails.
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-30}
out=build/soak
mkdir -p "$out"
build/release/prony mock --port 0 --ttft-ms 50 --itl-ms 100 --tokens 100 2>"$out/mock.log" &
mock=$!
trap 'kill $mock 2>/dev/null || true' EXIT
for _ in $(seq 100); do grep -q 'listening on' "$out/mock.log" && break; sleep 0.1; done
url=$(sed -n 's/.*listening on //p' "$out/mock.log")
build/release/prony bench --base-url "$url" --endpoint-type openai-chat --model mock --tokenizer byte \
  --max-concurrency 500 --request-rate inf --duration $((minutes * 60)) --input-len 64 --output-len 100 \
  --max-error-rate 0 --progress on --on-invalid warn --out "$out" &
client=$!
first=0 last=0 second=0
while kill -0 $client 2>/dev/null; do
  sleep 5
  second=$((second + 5))
  last=$(awk '/VmRSS/ {print $2}' /proc/$client/status 2>/dev/null || echo "$last")
  [ "$second" -ge $((minutes * 12)) ] && [ "$first" = 0 ] && first=$last
done
wait $client
echo "soak: client memory $first KiB after a fifth of the time, $last KiB at the end"
[ "$last" -le $((first + first / 10)) ]
