#!/usr/bin/env python3
"""Runs `prony predict` over public measurements and writes the errors.

usage: validate.py --prony build/release/prony --data DIR [--out validation]

DIR is a copy of the public tables (see validation/README.md for each one's source and licence). Rows
whose model is not in the catalogue are counted, not dropped in silence. Nothing is fitted here.
"""
import argparse
import csv
import json
import math
import os
import subprocess
import tempfile

MODELS = {
    "meta-llama/Llama-3.1-8B-Instruct": "llama-3.1-8b",
    "meta-llama/Llama-3.1-8B": "llama-3.1-8b",
    "meta-llama/Llama-3.1-70B": "llama-3.1-70b",
    "Qwen/Qwen3-32B": "qwen3-32b",
    "Qwen/Qwen3-32B-FP8": "qwen3-32b",
    "deepseek-ai/DeepSeek-R1": "deepseek-r1",
    "nvidia/DeepSeek-R1-NVFP4": "deepseek-r1",
    "LLaMA 7B": "llama-2-7b",
    "LLaMA 70B": "llama-2-70b",
    "LLaMA v3 70B": "llama-3-70b",
    "LLaMA v3.1 8B": "llama-3.1-8b",
    "LLaMA v3.1 70B": "llama-3.1-70b",
    "Mistral 7B": "mistral-7b-v0.3",
    "Mixtral 8x7B": "mixtral-8x7b",
    "meta-llama/Llama-2-7b-hf": "llama-2-7b",
    "meta-llama/Llama-2-70b-hf": "llama-2-70b",
    "meta-llama/Meta-Llama-3-8B": "llama-3-8b",
    "meta-llama/Meta-Llama-3-70B": "llama-3-70b",
    "mistralai/Mistral-7B-v0.1": "mistral-7b-v0.3",
    "mistralai/Mixtral-8x7B-v0.1": "mixtral-8x7b",
}
HARDWARE = {
    "h100_sxm": "h100-sxm",
    "h200_sxm": "h200-sxm",
    "b200_sxm": "b200-sxm",
    "b300_sxm": "b300-sxm",
    "gb200": "gb200",
    "A100-80GB-SXM": "a100-80-sxm",
    "A100-80GB-PCIE": "a100-80-pcie",
    "H100-80GB-SXM": "h100-sxm",
    "H200-141GB-SXM": "h200-sxm",
    "L40S": "l40s",
    "Nvidia A100 GPU": "a100-40-sxm",
    "Nvidia H100 GPU": "h100-sxm",
    "AMD MI300X GPU": "mi300x",
}
MOE = ("deepseek", "mixtral", "qwen3-30b")


def read(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def integer(text, default=1):
    return int(float(text)) if text not in ("", None) else default


def silicon(folder, skipped):
    """Mean TTFT and TPOT of closed loops, aggregated serving, one stage."""
    out = []
    for r in read(os.path.join(folder, "aiconfigurator-silicon/silicon_sample.csv")):
        if r["mode"] != "agg" or integer(r["pp_size"]) != 1 or integer(r["tp_size"]) > 8:
            continue
        model, hardware = MODELS.get(r["model_path"]), HARDWARE.get(r["system"])
        if not model or not hardware:
            skipped[r["model_path"]] = skipped.get(r["model_path"], 0) + 1
            continue
        dtype = {"fp8": "fp8", "fp4": "fp4", "bf16": "bf16", "": "bf16"}.get(r["precision"])
        moe = model.startswith(MOE)
        if dtype == "fp8" and moe:
            dtype = "fp8-block"
        row = {"model": model, "hardware": hardware, "engine": r["backend"],
               "tp": integer(r["tp_size"]), "weight-dtype": dtype,
               "input-len": integer(r["isl"]), "output-len": integer(r["osl"]),
               "concurrency": integer(r["batch_size"])}
        dp = integer(r["attention_dp_size"])
        if moe:
            row["dp"], row["ep"] = dp, integer(r["moe_ep_size"])
            if (row["tp"] * dp) % row["ep"]:
                row["ep"] = 1
            if dp > 1 and row["tp"] >= dp:
                # The file counts the ranks of all groups in tp_size in some rows: not settled.
                skipped["attention dp, ranks unclear"] = skipped.get("attention dp, ranks unclear", 0) + 1
                continue
        out.append(("serving", r["id"], row,
                    {"ttft_ms": float(r["silicon_ttft_ms"]), "tpot_ms": float(r["silicon_tpot_ms"])}))
    return out


def trtllm(folder, skipped):
    """Output tokens/s at maximum load (0.14) and of static batches (0.9)."""
    out = []
    for i, r in enumerate(read(os.path.join(folder, "trtllm-perf-overview/throughput.csv"))):
        model, hardware = MODELS.get(r["model"]), HARDWARE.get(r["gpu"])
        if not model or not hardware:
            skipped[r["model"]] = skipped.get(r["model"], 0) + 1
            continue
        static = r["mode"].startswith("static")
        row = {"model": model, "hardware": hardware, "engine": "trtllm", "tp": integer(r["tp"]),
               "pp": integer(r["pp"]), "weight-dtype": r["precision"].lower(),
               "input-len": integer(r["input_len"]), "output-len": integer(r["output_len"])}
        if static:
            row["static"], row["concurrency"] = True, integer(r["batch_size"])
        else:
            row["concurrency"], row["num-prompts"] = 3000, 3000
        out.append(("static" if static else "throughput", "trtllm-%d" % i, row,
                    {"output_throughput": float(r["output_tokens_per_s_total"])}))
    return out


def first_token(folder, skipped):
    """The prefill step of one prompt alone, TensorRT-LLM 0.9: the step model without any serving."""
    out = []
    for i, r in enumerate(read(os.path.join(folder, "trtllm-perf-overview/first_token_latency_bs1.csv"))):
        model, hardware = MODELS.get(r["model"]), HARDWARE.get(r["gpu"])
        if not model or not hardware:
            skipped[r["model"]] = skipped.get(r["model"], 0) + 1
            continue
        row = {"model": model, "hardware": hardware, "engine": "trtllm", "tp": integer(r["tp"]),
               "weight-dtype": r["precision"].lower(), "input-len": integer(r["input_len"]),
               "output-len": 2, "concurrency": 1}
        out.append(("first-token", "first-%d" % i, row, {"prefill_ms": float(r["first_token_latency_ms"])}))
    return out


def mlperf(folder, skipped):
    """Closed division, Offline, TensorRT-LLM, one row a submission; OpenOrca lengths."""
    out, seen = [], set()
    plans = {"NVIDIA H100-SXM-80GB": ("h100-sxm", {"llama2": 2, "mixtral": 1}),
             "NVIDIA H200-SXM-141GB": ("h200-sxm", {"llama2": 1, "mixtral": 1})}
    for r in read(os.path.join(folder, "mlperf-inference/mlperf_inference_v4.1_llm.csv")):
        family = "llama2" if r["model"].startswith("llama2") else r["model"].split("-")[0]
        plan = plans.get(r["accelerator"])
        if (r["division"] != "closed" or r["scenario"] != "Offline" or not plan
                or family not in plan[1] or "TensorRT" not in r["framework"] or "MaxQ" in r["system"]):
            continue
        key = (r["submitter"], r["system"], family)
        if key in seen:  # the 99 and the 99.9 target name the same run
            continue
        seen.add(key)
        devices = integer(r["accelerators_per_node"]) * integer(r["nodes"])
        tp = plan[1][family]
        lengths = (294, 290) if family == "llama2" else (280, 146)
        row = {"model": "llama-2-70b" if family == "llama2" else "mixtral-8x7b", "hardware": plan[0],
               "engine": "trtllm", "tp": tp, "weight-dtype": "fp8", "input-len": lengths[0],
               "output-len": lengths[1], "concurrency": 3000, "num-prompts": 24576}
        out.append(("mlperf", "/".join(key), row,
                    {"output_throughput": float(r["tokens_per_s"]) * tp / devices}))
    return out


def argonne(folder, skipped):
    """Offline batches, latency of the whole batch in 16 bits; A100 cards are taken as 40 GB."""
    out = []
    for i, r in enumerate(read(os.path.join(folder, "argonne-llm-inference-bench/all_results.csv"))):
        engine = {"vLLM": "vllm-0.6", "TensorRT-LLM": "trtllm"}.get(r["Framework"])
        model, hardware = MODELS.get(r["Model"]), HARDWARE.get(r["Hardware"])
        if not engine or not model or not hardware:
            skipped["argonne other"] = skipped.get("argonne other", 0) + 1
            continue
        length, batch = integer(r["Input Output Length"]), integer(r["Batch Size"])
        row = {"model": model, "hardware": hardware, "engine": engine,
               "tp": integer(r["Num of Hardware"]), "weight-dtype": "bf16", "input-len": length,
               "output-len": length, "static": True, "concurrency": batch}
        out.append(("offline-batch", "argonne-%d" % i, row,
                    {"output_throughput": batch * length / float(r["Latency"])}))
    return out


def predict(prony, rows):
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", delete=False) as file:
        for _, _, row, _ in rows:
            file.write(json.dumps(row) + "\n")
    run = subprocess.run([prony, "predict", "--rows", file.name], capture_output=True, text=True,
                         check=False, timeout=900)
    os.unlink(file.name)
    if run.returncode:
        raise SystemExit(run.stderr)
    return [json.loads(line) for line in run.stdout.splitlines()]


def quantile(values, p):
    values = sorted(values)
    return values[min(len(values) - 1, int(p * len(values)))]


def summary(errors):
    size = [abs(e) for e in errors]
    return {"rows": len(errors), "mape": sum(size) / len(size), "median": quantile(size, 0.5),
            "p90": quantile(size, 0.9), "bias": sum(errors) / len(errors)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--prony", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--out")
    parser.add_argument("--dump", help="every row with its errors, as CSV")
    args = parser.parse_args()
    skipped, rows = {}, []
    for source in (silicon, trtllm, first_token, mlperf, argonne):
        rows += source(args.data, skipped)
    answers = predict(args.prony, rows)
    groups, refused, dump = {}, {}, []
    for (kind, name, row, truth), answer in zip(rows, answers):
        moe = "moe" if row["model"].startswith(MOE) else "dense"
        if "error" in answer:
            refused[answer["error"][:60]] = refused.get(answer["error"][:60], 0) + 1
            continue
        for metric, true in truth.items():
            if answer.get(metric) is None or true <= 0:
                continue
            if metric == "ttft_ms" and answer["load_share"] > 0.8:
                continue
            error = answer[metric] / true - 1
            dump.append([kind, name, metric, row["engine"], row["hardware"], row["model"], row["tp"],
                         row.get("pp", 1), row["weight-dtype"], row["input-len"], row["output-len"],
                         row["concurrency"], "%.5g" % true, "%.5g" % answer[metric], "%.4f" % error])
            for key in ((kind, metric, moe, "all", "all", "all"),
                        (kind, metric, moe, row["engine"], row["hardware"], row["model"])):
                groups.setdefault(key, []).append(error)
    head = ["class", "metric", "kind", "engine", "hardware", "model", "rows", "mape", "median",
            "p90", "bias"]
    lines = []
    for key in sorted(groups, key=lambda k: (k[3] != "all", k)):
        s = summary(groups[key])
        lines.append(list(key) + [s["rows"]] + ["%.3f" % s[x] for x in ("mape", "median", "p90", "bias")])
    if args.dump:
        with open(args.dump, "w", newline="") as file:
            csv.writer(file).writerows(
                [["class", "row", "metric", "engine", "hardware", "model", "tp", "pp", "weights",
                  "input", "output", "concurrency", "measured", "predicted", "error"]] + dump)
    if args.out:
        with open(os.path.join(args.out, "errors.csv"), "w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([head] + lines)
        with open(os.path.join(args.out, "errors.md"), "w") as file:
            file.write("# Errors of `prony predict` against public measurements\n\n"
                       "Written by validation/validate.py; README.md says what is compared. Errors "
                       "are predicted/measured - 1; MAPE, median and P90 are of their size.\n\n")
            file.write("| " + " | ".join(head) + " |\n|" + "---|" * len(head) + "\n")
            for line in lines:
                file.write("| " + " | ".join(map(str, line)) + " |\n")
            file.write("\nRefused by the predictor: %d rows\n\n" % sum(refused.values()))
            for reason, count in sorted(refused.items(), key=lambda item: -item[1]):
                file.write("- %d: %s\n" % (count, reason))
            file.write("\nNot compared, because the catalogue has no such model or device: %s\n"
                       % ", ".join("%s (%d)" % item for item in sorted(skipped.items())))
    for line in lines:
        print(*line)
    print("refused", refused)


if __name__ == "__main__":
    main()
