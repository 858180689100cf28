#!/usr/bin/env bash
# Runs every fuzzer in build/fuzz/fuzzers, one after the other: scripts/fuzz.sh SECONDS [NAME...].
# Seeds: the committed corpus tests/fuzz/NAME and what earlier runs found (build/fuzz/corpus/NAME,
# minimised after each run). An input that breaks a fuzzer is left in build/fuzz/found, and the exit
# code is 1: fix the fault and commit the input to tests/fuzz/NAME, which the tests replay.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
seconds=${1:?usage: scripts/fuzz.sh SECONDS [NAME...]}
shift
names=("$@")
if [ ${#names[@]} = 0 ]; then
  for program in build/fuzz/fuzzers/*_fuzz; do names+=("$(basename "$program" _fuzz)"); done
fi
mkdir -p build/fuzz/found
status=0
for name in "${names[@]}"; do
  seeds=()
  for folder in "tests/fuzz/$name" "tests/data/catalog/hf" "tests/data/catalog/broken"; do
    # The readers of model files start from the files that their tests have.
    [[ $folder == tests/fuzz/* || $name == model_files ]] && [ -d "$folder" ] && seeds+=("$folder")
  done
  kept=build/fuzz/corpus/$name log=build/fuzz/$name.log
  mkdir -p "$kept"
  common=(-max_len=4096 -timeout=10 -rss_limit_mb=2048 -close_fd_mask=1 "-artifact_prefix=build/fuzz/found/$name-")
  if timeout $((seconds + 120)) "build/fuzz/fuzzers/${name}_fuzz" "${common[@]}" \
      "-max_total_time=$seconds" -print_final_stats=1 "$kept" "${seeds[@]}" >"$log" 2>&1; then
    runs=$(sed -nE 's/^stat::number_of_executed_units: +//p' "$log")
    rm -rf "$kept.new" && mkdir -p "$kept.new"
    timeout 120 "build/fuzz/fuzzers/${name}_fuzz" "${common[@]}" -merge=1 "$kept.new" "$kept" \
      >>"$log" 2>&1 && rm -rf "$kept" && mv "$kept.new" "$kept"
    echo "fuzz $name: $runs runs in $seconds s, $(find "$kept" -type f | wc -l) inputs kept"
  else
    status=1
    echo "fuzz $name: FAILED, see $log: $(grep -m1 -E 'ERROR|error:|check failed|SUMMARY' "$log" || tail -n 1 "$log")"
  fi
done
exit $status
