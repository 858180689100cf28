#!/usr/bin/env python3
"""The locked report: tables and a figure from the outputs of the other scripts.

usage: report.py operators OPERATORS.json validation/operators.md
       report.py figure ROWS.csv docs/validation.svg

OPERATORS.json is the gtest output of perfmodel's OperatorAccuracy, ROWS.csv of `validate.py --dump`.
"""
import csv
import json
import sys

MIXTURES = ("deepseek", "mixtral", "qwen3-30b")
# Class, metric and kind of model in the order of the figure, with the target where there is one.
CLASSES = [
    ("serving", "tpot_ms", "dense", "TPOT, closed loops, dense", 0.18),
    ("serving", "tpot_ms", "moe", "TPOT, DeepSeek-R1", None),
    ("serving", "ttft_ms", "dense", "TTFT below 80 % load, dense", 0.20),
    ("serving", "ttft_ms", "moe", "TTFT, DeepSeek-R1", None),
    ("throughput", "output_throughput", "dense", "throughput, TensorRT-LLM 0.14, dense", 0.15),
    ("throughput", "output_throughput", "moe", "the same, Mixtral", 0.15),
    ("mlperf", "output_throughput", "dense", "MLPerf v4.1, Llama-2-70B", 0.20),
    ("mlperf", "output_throughput", "moe", "MLPerf v4.1, Mixtral", 0.20),
    ("static", "output_throughput", "dense", "static batches, dense", None),
    ("first-token", "prefill_ms", "dense", "prefill step alone, dense", None),
    ("offline-batch", "output_throughput", "dense", "whole batches, dense", None),
    ("offline-batch", "output_throughput", "moe", "whole batches, Mixtral", None),
]


def operators(source, out):
    with open(source) as file:
        case = json.load(file)["testsuites"][0]["testsuite"][0]
    rows = [[*name.split(), *value.split()] for name, value in case.items()
            if isinstance(value, str) and len(value.split()) == 4 and len(name.split()) == 3]
    with open(out, "w") as file:
        file.write("# Errors of single operators against public kernel tables\n\nWritten by `./run validate` "
                   "from validation/operators.csv. Errors are predicted/measured - 1; median and P90 of their "
                   "size.\n\n| operator | hardware | format | rows | median | P90 | bias |\n|---|---|---|---|---|---|---|\n")
        for row in rows:
            file.write("| " + " | ".join(row) + " |\n")


def quantile(values, p):
    return values[min(len(values) - 1, int(p * len(values)))]


def figure(source, out):
    errors = {}
    with open(source, newline="") as file:
        for row in csv.DictReader(file):
            kind = "moe" if row["model"].startswith(MIXTURES) else "dense"
            errors.setdefault((row["class"], row["metric"], kind), []).append(float(row["error"]))
    left, width, line = 300, 520, 24
    scale = lambda e: left + width * (min(max(e, -1), 1) + 1) / 2
    body = []
    for i, (name, metric, kind, title, target) in enumerate(CLASSES):
        values, y = sorted(errors.get((name, metric, kind), [])), 40 + i * line
        if not values:
            continue
        body.append('<text x="%d" y="%d" text-anchor="end">%s (%d)</text>' % (left - 8, y + 4, title, len(values)))
        if target:
            body.append('<rect x="%.1f" y="%d" width="%.1f" height="18" class="t"/>'
                        % (scale(-target), y - 9, scale(target) - scale(-target)))
        low, high = quantile(values, 0.1), quantile(values, 0.9)
        body.append('<rect x="%.1f" y="%d" width="%.1f" height="8" class="b"/>'
                    % (scale(low), y - 4, max(1, scale(high) - scale(low))))
        middle = scale(quantile(values, 0.5))
        body.append('<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" class="m"/>' % (middle, middle, y - 7, y + 7))
    bottom = 40 + len(CLASSES) * line
    for share in (-1, -0.5, 0, 0.5, 1):
        x = scale(share)
        body.append('<line x1="%.1f" x2="%.1f" y1="24" y2="%d" class="g"/>' % (x, x, bottom))
        body.append('<text x="%.1f" y="%d" text-anchor="middle">%+d %%</text>' % (x, bottom + 16, 100 * share))
    with open(out, "w") as file:
        file.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">'
                   '<title>Errors of predictions by class: 10th to 90th percentile, median, target</title>'
                   '<style>.t{fill:#dfeadf}.b{fill:#4a7ab5}.m{stroke:#111;stroke-width:2}.g{stroke:#ccc}'
                   'text{fill:#222}</style><rect width="100%%" height="100%%" fill="#fff"/>\n'
                   '<text x="%d" y="16">predicted / measured - 1: bar 10th to 90th percentile, tick median, green target'
                   '</text>\n%s\n</svg>\n' % (left + width + 30, bottom + 24, left, "\n".join(body)))


def main():
    command, source, out = sys.argv[1:4]
    {"operators": operators, "figure": figure}[command](source, out)


if __name__ == "__main__":
    main()
