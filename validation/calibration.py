#!/usr/bin/env python3
"""Does a calibration help on models that it has not seen?

usage: calibration.py --prony build/release/prony --rows ROWS.csv --out validation

ROWS.csv is what `validate.py --dump` writes. For every engine and device with two dense model families
or more, `prony fit --model engine` sees all families but one, and `prony predict --calibration`
answers for that one. Mixtures are left out: their experts are another kernel.
"""
import argparse
import csv
import json
import os
import subprocess
import tempfile

FAMILIES = {"llama-3-8b": "llama-3-8b", "llama-3.1-8b": "llama-3-8b", "llama-3-70b": "llama-3-70b",
            "llama-3.1-70b": "llama-3-70b"}
REQUESTS = {"throughput": 3000, "mlperf": 24576}
STATIC = ("static", "offline-batch")
MIXTURES = ("deepseek", "mixtral", "qwen3-30b")


def family(model):
    return FAMILIES.get(model, model)


def run(prony, *args):
    return subprocess.run([prony, *args], capture_output=True, text=True, check=False, timeout=300)


def flags(row):
    out = {"model": row["model"], "hardware": row["hardware"], "engine": row["engine"],
           "tp": int(row["tp"]), "weight-dtype": row["weights"], "input-len": int(row["input"]),
           "output-len": int(row["output"]), "concurrency": int(row["concurrency"])}
    if row["class"] in STATIC:
        out["static"] = True
    if row["class"] in REQUESTS:
        out["num-prompts"] = REQUESTS[row["class"]]
    return out


def write_table(path, rows):
    """The columns that `prony fit --model engine` reads."""
    requests = REQUESTS.get(rows[0]["class"])
    head = ["model_id", "tp", "input_len", "output_len", "concurrency", "weight_dtype", "static"]
    head += ["num_prompts"] if requests else []
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head + [rows[0]["metric"]])
        for row in rows:
            cells = [row[key] for key in ("model", "tp", "input", "output", "concurrency", "weights")]
            cells += [int(row["class"] in STATIC)] + ([requests] if requests else [])
            writer.writerow(cells + [row["measured"]])


def hold_out(prony, folder, rows, name):
    """Errors on the family `name`, predicted with what the others say. None: there is no fit."""
    table, overlay, questions = (os.path.join(folder, x) for x in ("t.csv", "c.yaml", "q.jsonl"))
    write_table(table, [row for row in rows if family(row["model"]) != name])
    fitted = run(prony, "fit", table, "--model", "engine", "--hardware", rows[0]["hardware"],
                 "--engine", rows[0]["engine"], "--out", overlay, "--json")
    if fitted.returncode:
        return None, fitted.stderr.strip()
    test = [row for row in rows if family(row["model"]) == name]
    with open(questions, "w") as file:
        for row in test:
            file.write(json.dumps(dict(flags(row), calibration=overlay)) + "\n")
    answers = [json.loads(line) for line in
               run(prony, "predict", "--rows", questions).stdout.splitlines()]
    factors = [each["value"] for each in json.loads(fitted.stdout)["parameters"]]
    return [answer[row["metric"]] / float(row["measured"]) - 1
            for answer, row in zip(answers, test)], factors


def mape(errors):
    return sum(abs(e) for e in errors) / len(errors)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prony", required=True)
    parser.add_argument("--rows", required=True)
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    groups = {}
    with open(args.rows, newline="") as file:
        for row in csv.DictReader(file):
            if row["metric"] == "ttft_ms" or row["pp"] != "1" or row["model"].startswith(MIXTURES):
                continue
            groups.setdefault((row["class"], row["engine"], row["hardware"]), []).append(row)
    lines, totals, alone = [], {}, []
    with tempfile.TemporaryDirectory() as folder:
        for key in sorted(groups):
            rows = groups[key]
            names = sorted({family(row["model"]) for row in rows})
            if len(names) < 2:
                alone.append(" ".join(key))
                continue
            for name in names:
                after, factors = hold_out(args.prony, folder, rows, name)
                if after is None:
                    print(*key, name, factors)
                    continue
                before = [float(row["error"]) for row in rows if family(row["model"]) == name]
                total = totals.setdefault(key[0], ([], []))
                total[0].extend(before)
                total[1].extend(after)
                lines.append([*key, name, len(after), "%.3f" % mape(before), "%.3f" % mape(after)]
                             + ["%.2f" % factor for factor in factors])
    head = ["class", "engine", "hardware", "held out", "rows", "uncalibrated", "calibrated", "device",
            "link", "engine factor"]
    for name in sorted(totals):
        before, after = totals[name]
        lines.append([name, "all", "all", "each", len(after), "%.3f" % mape(before),
                      "%.3f" % mape(after), "", "", ""])
    with open(os.path.join(args.out, "calibration.md"), "w") as file:
        file.write("# Calibration, judged on models that it has not seen\n\nWritten by "
                   "validation/calibration.py. MAPE of the held-out dense family, before and after "
                   "`prony fit --model engine` on the others of the same engine and device.\n\n")
        file.write("| " + " | ".join(head) + " |\n|" + "---|" * len(head) + "\n")
        for line in lines:
            file.write("| " + " | ".join(map(str, line)) + " |\n")
        file.write("\nOnly one dense family, so nothing can be held out: %s\n" % ", ".join(alone))
    for line in lines:
        print(*line)


if __name__ == "__main__":
    main()
