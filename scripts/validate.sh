#!/usr/bin/env bash
# The locked validation report. Without an argument: the gates on the samples in validation/, and the
# committed figures. With DIR, a copy of the public tables that validation/README.md names: everything
# anew, written into validation/ and docs/; `git diff` then says what has moved.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
test=build/release/prony_perfmodel_test
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

timeout 300 "$test" --gtest_filter='Regression.*:OperatorAccuracy.*' --gtest_output="json:$scratch/all.json" \
  --gtest_brief=1
if [ $# -gt 0 ]; then
  timeout 300 "$test" --gtest_filter='OperatorAccuracy.*' --gtest_output="json:$scratch/operators.json" --gtest_brief=1
  python3 validation/report.py operators "$scratch/operators.json" validation/operators.md
  timeout 900 python3 validation/validate.py --prony build/release/prony --data "$1" --out validation \
    --dump "$scratch/rows.csv" >/dev/null
  timeout 900 python3 validation/calibration.py --prony build/release/prony --rows "$scratch/rows.csv" \
    --out validation >/dev/null
  python3 validation/report.py figure "$scratch/rows.csv" docs/validation.svg
fi
cat validation/operators.md
grep -E '^\| (class|---)|\| all \| all \| all \|' validation/errors.md
grep -E '^\| (class|---)|\| all \| all \| each \|' validation/calibration.md
