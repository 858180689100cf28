#!/usr/bin/env python3
"""Trains the house model on one GPU.

    python3 tools/train/train.py --data DIR --state DIR --seconds 560 --decay-from 0.4 --export FOLDER

DIR/{train,validation}.bin come from tokenizer.py. A run lasts --seconds of wall-clock time, then
leaves a checkpoint in --state from which the next run resumes. The schedule is warm-up, stable,
decay: the full learning rate in contexts of 1,024 tokens until the share --decay-from of the run's
time, then linearly to zero while the context grows to 2,048 and, for the last part, to 8,192. With
--decay-from 1 (several machines, one after the other) a run never decays. Matrices are trained with Muon (momentum, orthogonalized by five
Newton-Schulz steps), embeddings and norms with AdamW; weights are fp32, arithmetic is bf16. Every
figure of the run is appended to curve.json in --state.
"""
import argparse
import json
import math
import pathlib
import time

import numpy as np
import torch
import torch.nn.functional as F

import model as house

TOKENS_PER_STEP = 1 << 18
TOKENS_PER_MICROBATCH = 1 << 18  # its logits take 13 GB
MUON_RATE, ADAM_RATE = 0.02, 0.004
WARM_UP_STEPS = 150
MOMENTUM = 0.95
WEIGHT_DECAY = 0.02          # of the matrices, times the learning rate
BALANCE_WEIGHT = 0.01        # of the experts' balance term
# Share of the decay from which each context length is used.
DECAY_CONTEXTS = ((0.0, 1024), (0.35, 2048), (0.6, 8192))
VALIDATION_TOKENS = 1 << 20


class Muon(torch.optim.Optimizer):
    """Momentum whose update is the nearest orthogonal matrix (Jordan et al. 2024)."""

    def __init__(self, parameters, rate):
        super().__init__(parameters, {"lr": rate})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            by_shape = {}
            for p in group["params"]:
                by_shape.setdefault(tuple(p.shape), []).append(p)
            for (rows, columns), same in by_shape.items():
                gradients = torch.stack([p.grad for p in same])
                state = self.state[same[0]]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(gradients)
                state["momentum"].lerp_(gradients, 1 - MOMENTUM)
                update = orthogonalized(gradients.lerp(state["momentum"], MOMENTUM))
                scale = group["lr"] * max(1.0, rows / columns) ** 0.5
                for p, u in zip(same, update):
                    p.mul_(1 - group["lr"] * WEIGHT_DECAY).add_(u.to(p.dtype), alpha=-scale)


@torch.compile(dynamic=False)
def orthogonalized(x):
    """Newton-Schulz iteration in bf16 on a stack of matrices."""
    x = x.bfloat16()
    tall = x.size(-2) > x.size(-1)
    if tall:
        x = x.mT
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    return x.mT if tall else x


class Windows:
    """Endless batches: each epoch takes the documents in a new order and cuts them at a new offset."""

    def __init__(self, folder, seed):
        self.tokens = torch.from_numpy(np.fromfile(folder / "train.bin", dtype=np.uint16).astype(np.int16)).cuda()
        self.documents = [(d[2], d[3]) for d in json.loads((folder / "train.json").read_text())]
        self.generator = np.random.default_rng(seed)
        self.epochs, self.order, self.at, self.length = 0.0, None, 0, 0

    def _restart(self, length):
        pieces = [self.tokens[first:first + count] for first, count in
                  (self.documents[i] for i in self.generator.permutation(len(self.documents)))]
        stream = torch.cat(pieces)
        offset = int(self.generator.integers(0, length))
        windows = (len(stream) - offset - 1) // length
        self.stream = stream[offset:offset + windows * length + 1]
        self.order = torch.from_numpy(self.generator.permutation(windows)).cuda()
        self.at, self.length = 0, length

    def next(self, batch, length):
        if self.length != length or self.at + batch > len(self.order):
            self._restart(length)
        starts = self.order[self.at:self.at + batch] * length
        self.at += batch
        self.epochs += batch * length / len(self.tokens)
        index = starts[:, None] + torch.arange(length + 1, device="cuda")[None, :]
        chunk = self.stream[index].long()
        return chunk[:, :-1], chunk[:, 1:]


def head_loss(hidden, embedding, targets):
    logits = F.linear(hidden, embedding.to(hidden.dtype)).float()
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def validation_loss(network, loss_of, tokens, length):
    """Mean loss in nats a token over fixed windows of the validation part."""
    total = count = 0
    windows = min(VALIDATION_TOKENS // length, (len(tokens) - 1) // length)
    batch = max(1, min(windows, (1 << 16) // length))
    with torch.no_grad(), torch.compiler.set_stance("force_eager"):  # a graph of its own costs more
        for at in range(0, windows - batch + 1, batch):
            chunk = tokens[at * length:(at + batch) * length + 1].long()
            x, y = chunk[:-1].view(batch, length), chunk[1:].view(batch, length)
            total += loss_of(network.hidden(x, torch.bfloat16), network.model.embed_tokens.weight, y).item()
            count += 1
    return total / count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--state", type=pathlib.Path, required=True)
    parser.add_argument("--decay-from", type=float, default=1.0, help="share of the run, 1: no decay")
    parser.add_argument("--seconds", type=float, required=True, help="wall-clock time of this run")
    parser.add_argument("--experts", type=int, default=0, help="8: the mixture-of-experts sibling")
    parser.add_argument("--ffn", type=int, default=768)
    parser.add_argument("--export", type=pathlib.Path, help="write the model as a Hugging Face folder")
    parser.add_argument("--seed", type=int, default=20261130)
    options = parser.parse_args()
    began = time.monotonic()
    options.state.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    torch.set_float32_matmul_precision("high")
    network = house.House(house.Config(experts=options.experts, ffn_size=options.ffn)).cuda()
    checkpoint = options.state / "checkpoint.pt"
    matrices = [p for n, p in network.named_parameters() if p.dim() == 2 and "embed" not in n and ".gate." not in n]
    chosen = {id(p) for p in matrices}
    others = [p for p in network.parameters() if id(p) not in chosen]
    muon = Muon(matrices, MUON_RATE)
    adam = torch.optim.AdamW(others, lr=ADAM_RATE, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    curve, step = [], 0
    if checkpoint.exists():
        kept = torch.load(checkpoint, map_location="cuda", weights_only=False)
        network.load_state_dict(kept["network"])
        adam.load_state_dict(kept["adam"])
        muon.load_state_dict(kept["muon"])
        curve, step = kept["curve"], kept["step"]
    windows = Windows(options.data, options.seed + step)
    windows.epochs = curve[-1]["epochs"] if curve else 0.0
    tokens_seen = curve[-1]["tokens"] if curve else 0
    validation = torch.from_numpy(
        np.fromfile(options.data / "validation.bin", dtype=np.uint16).astype(np.int16)).cuda()
    described = json.loads((options.data / "validation.json").read_text())
    bits_per_byte = sum(d[3] for d in described) / sum(d[4] for d in described) / math.log(2)
    print(f"{sum(p.numel() for p in network.parameters())} parameters, {len(windows.tokens)} training tokens, "
          f"step {step}", flush=True)
    torch._dynamo.config.recompile_limit = 64  # one entry for each context length
    for i, block in enumerate(network.model.layers):
        network.model.layers[i].forward = torch.compile(block.forward, dynamic=False)
    loss_of = torch.compile(head_loss, dynamic=False)

    def record(kind, **more):
        entry = {"step": step, "tokens": tokens_seen, "epochs": round(windows.epochs, 3),
                 "seconds": round(time.monotonic() - began, 1), **more}
        curve.append(entry)
        print(kind, json.dumps(entry), flush=True)

    limit = options.seconds - 8  # what the last validation and the checkpoint take
    running = torch.zeros((), device="cuda")
    since, mark, mark_tokens, next_validation = 0, time.monotonic(), tokens_seen, 0.0
    while True:
        elapsed = time.monotonic() - began
        share = elapsed / limit
        if share >= 1:
            break
        length, rate = 1024, min(1.0, (step + 1) / WARM_UP_STEPS)
        if share >= options.decay_from:
            decayed = (share - options.decay_from) / (1 - options.decay_from)
            length = [c for start, c in DECAY_CONTEXTS if decayed >= start][-1]
            rate = min(rate, 1 - decayed)
        for optimizer, peak in ((muon, MUON_RATE), (adam, ADAM_RATE)):
            for group in optimizer.param_groups:
                group["lr"] = peak * rate
        micro = max(1, TOKENS_PER_MICROBATCH // length)
        count = TOKENS_PER_STEP // (micro * length)
        for _ in range(count):
            x, y = windows.next(micro, length)
            loss = loss_of(network.hidden(x, torch.bfloat16), network.model.embed_tokens.weight, y)
            total = loss
            if options.experts:
                total = loss + BALANCE_WEIGHT * sum(b.block_sparse_moe.balance_loss for b in network.model.layers)
            (total / count).backward()
            running += loss.detach() / count
            tokens_seen += micro * length
        muon.step()
        adam.step()
        for p in network.parameters():
            p.grad = None
        step += 1
        since += 1
        if step % 50 == 0:
            now = time.monotonic()
            mean = running.item() / since
            extra = {}
            if now - began >= next_validation:
                extra["validation_bits_per_byte"] = round(
                    validation_loss(network, loss_of, validation, length) * bits_per_byte, 4)
                next_validation = now - began + 25
            record("step", loss=round(mean, 4), context=length, rate=round(rate, 4),
                   tokens_per_second=round((tokens_seen - mark_tokens) / (now - mark)), **extra)
            running.zero_()
            since, mark, mark_tokens = 0, time.monotonic(), tokens_seen
    record("end", context=length, validation_bits_per_byte=round(
        validation_loss(network, loss_of, validation, length) * bits_per_byte, 4),
        peak_gib=round(torch.cuda.max_memory_allocated() / 2 ** 30, 1))
    torch.save({"network": network.state_dict(), "adam": adam.state_dict(), "muon": muon.state_dict(),
                "curve": curve, "step": step}, checkpoint)
    (options.state / "curve.json").write_text("[\n" + ",\n".join(json.dumps(e) for e in curve) + "\n]\n")
    if options.export:
        house.save(network, options.export, 0, [1, 5])


if __name__ == "__main__":
    main()
