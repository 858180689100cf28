#!/usr/bin/env python3
"""Draws validation/operators.csv from the public operator tables.

usage: sample_operators.py DIR/aiconfigurator-ops validation/operators.csv

The draw is by a fixed stride over sorted rows of shapes that serving meets, so it is the same on
every machine. Tables: ai-dynamo/aiconfigurator, commit 095f58a, Apache-2.0.
"""
import csv
import gzip
import os
import sys

ROWS = 40  # of each operator, device and format


def table(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def draw(rows, key):
    rows = sorted(rows, key=key)
    return [rows[int((i + 0.5) * len(rows) / ROWS)] for i in range(min(ROWS, len(rows)))]


def number(row, *names):
    return tuple(int(row[name]) for name in names)


def gemms(rows, kernel):
    if kernel:
        rows = [r for r in rows if r["kernel_source"] == kernel]
    rows = [r for r in rows if 1024 <= int(r["n"]) <= 65536 and 1024 <= int(r["k"]) <= 32768 and int(r["m"]) <= 16384]
    return [(*number(r, "m", "n", "k"), 0, 0, r["latency_ms"]) for r in draw(rows, lambda r: number(r, "m", "n", "k"))]


def attention(rows, length, most):
    rows = [r for r in rows if r.get("head_dim", "128") == "128" and r.get("kv_cache_dtype", "bfloat16") == "bfloat16"
            and r.get("window_size", "0") in ("0", "-1") and int(r["num_key_value_heads"]) in (1, 2, 4, 8)
            and 8 <= int(r["num_heads"]) and 128 <= int(r[length]) <= most]
    names = ("batch_size", length, "num_heads", "num_key_value_heads")
    return [(*number(r, *names), 128, r["latency_ms"]) for r in draw(rows, lambda r: number(r, *names))]


def reduces(rows):
    rows = [r for r in rows if r.get("op_name", "all_reduce") == "all_reduce" and r.get("nccl_dtype", "half") == "half"
            and r.get("backend", "vllm_graph") == "vllm_graph"]
    # Sizes are in elements of two bytes.
    return [(int(r["num_gpus"]), 2 * int(r["message_size"]), 0, 0, 0, r["latency_ms"])
            for r in draw(rows, lambda r: number(r, "num_gpus", "message_size"))]


def main():
    folder, out = sys.argv[1], sys.argv[2]
    read = lambda name: table(os.path.join(folder, name))
    a100, h100 = "a100_sxm/vllm-0.14.0_", "h100_sxm/vllm-0.24.0_"
    parts = [
        ("gemm", "a100-80-sxm", "bf16", gemms(read(a100 + "gemm_perf.csv"), None)),
        ("gemm", "h100-sxm", "bf16", gemms(read(h100 + "gemm_perf.csv.gz"), "torch.nn.functional.linear")),
        ("gemm", "h100-sxm", "fp8", gemms(read(h100 + "gemm_perf.csv.gz"), "CutlassFP8ScaledMMLinearKernel")),
        ("attention-prefill", "a100-80-sxm", "bf16", attention(read(a100 + "context_attention_perf.csv"), "isl", 32768)),
        ("attention-prefill", "h100-sxm", "bf16", attention(read(h100 + "context_attention_perf.csv"), "isl", 32768)),
        ("attention-decode", "a100-80-sxm", "bf16", attention(read(a100 + "generation_attention_perf.csv"), "step", 65536)),
        ("attention-decode", "h100-sxm", "bf16", attention(read(h100 + "generation_attention_perf.csv.gz"), "step", 65536)),
        ("all-reduce", "a100-80-sxm", "engine", reduces(read(a100 + "custom_allreduce_perf.csv"))),
        ("all-reduce", "h100-sxm", "engine", reduces(read(h100 + "custom_allreduce_perf.csv"))),
        ("all-reduce", "a100-80-sxm", "library", reduces(read("a100_sxm/nccl-2.27.3_nccl_perf.csv"))),
        ("all-reduce", "h100-sxm", "library", reduces(read("h100_sxm/nccl-2.29.2_nccl_perf.csv"))),
        ("all-reduce", "b200-sxm", "library", reduces(read("b200_sxm/nccl-2.29.2_nccl_perf.csv"))),
    ]
    with open(out, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["operator", "hardware", "format", "a", "b", "c", "d", "e", "ms"])
        for operator, hardware, dtype, rows in parts:
            for row in rows:
                writer.writerow([operator, hardware, dtype, *row])


if __name__ == "__main__":
    main()
