#!/usr/bin/env python3
"""Makes one tiny random checkpoint per architecture and records what transformers says of it.

Each folder below OUT is a Hugging Face folder as save_pretrained leaves it (bf16 safetensors; some
sharded, some with tied heads) and oracle.safetensors beside it:

    prompt_<i>     int32 [tokens]           prompts of several lengths, beyond the sliding windows
    positions_<i>  int32 [n]                positions of the prompt whose logits are kept
    logits_<i>     float32 [n, vocab]       computed in float32, eager attention
    greedy         int32 [32]               greedy continuation of prompt_1 in float32
    metadata       versions; kl_bf16: KL of the same model run in bf16; float64_max: largest
                   difference to a float64 run (rotary tables and some norms stay float32 there)

The weights are far from zero on purpose: with the usual initialisation every architecture gives
nearly flat logits, and a wrong norm or rotation would pass. Needs torch, transformers 5 and
safetensors; runs on a CPU in a minute. Usage: record_checkpoints.py OUT
"""
import argparse
import json
import pathlib
import sys

import torch
import transformers
from safetensors.torch import save_file
from transformers import AutoConfig, AutoModelForCausalLM

VOCAB = 256
BASE = dict(
    vocab_size=VOCAB, hidden_size=64, intermediate_size=112, num_hidden_layers=2,
    num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=512,
    bos_token_id=1, eos_token_id=2, pad_token_id=None, tie_word_embeddings=False,
)
LLAMA3_ROPE = dict(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                   original_max_position_embeddings=32, rope_theta=500000.0)
YARN = dict(rope_type="yarn", factor=40.0, beta_fast=32, beta_slow=1, mscale=0.707,
            mscale_all_dim=0.707, original_max_position_embeddings=32, rope_theta=10000.0)

# name -> (model_type, overrides, shards)
CASES = {
    "llama-2": ("llama", dict(num_key_value_heads=4, rms_norm_eps=1e-5), 1),
    "llama-3": ("llama", dict(rope_theta=500000.0, rms_norm_eps=1e-5), 2),
    "llama-3.1": ("llama", dict(rope_scaling=LLAMA3_ROPE, rope_theta=500000.0,
                                eos_token_id=[2, 5, 7]), 3),
    "llama-3.2": ("llama", dict(rope_scaling=dict(LLAMA3_ROPE, factor=32.0), rope_theta=500000.0,
                                head_dim=32, tie_word_embeddings=True), 1),
    "mistral": ("mistral", dict(sliding_window=16, head_dim=24), 1),
    "qwen-2": ("qwen2", dict(rope_theta=1000000.0, tie_word_embeddings=True), 1),
    "qwen-2.5": ("qwen2", dict(rope_theta=1000000.0, rms_norm_eps=1e-6), 2),
    "qwen-3": ("qwen3", dict(rope_theta=1000000.0, head_dim=32), 1),
    "gemma-2": ("gemma2", dict(head_dim=24, query_pre_attn_scalar=20,
                               sliding_window=16, attn_logit_softcapping=5.0,
                               final_logit_softcapping=3.0, tie_word_embeddings=True,
                               hidden_activation="gelu_pytorch_tanh"), 1),
    "mixtral": ("mixtral", dict(num_local_experts=4, num_experts_per_tok=2,
                                intermediate_size=48), 2),
    "qwen-3-moe": ("qwen3_moe", dict(head_dim=32, num_experts=8, num_experts_per_tok=3,
                                     moe_intermediate_size=24, norm_topk_prob=True,
                                     decoder_sparse_step=1, mlp_only_layers=[]), 1),
    "qwen-3-moe-unnormed": ("qwen3_moe", dict(num_experts=8, num_experts_per_tok=3, head_dim=16,
                                              moe_intermediate_size=24, norm_topk_prob=False,
                                              decoder_sparse_step=1, mlp_only_layers=[0]), 1),
    "deepseek-v2-lite": ("deepseek_v2", dict(
        num_key_value_heads=4, q_lora_rank=None, kv_lora_rank=32, qk_nope_head_dim=16,
        qk_rope_head_dim=8, v_head_dim=16, n_routed_experts=8, n_shared_experts=2,
        num_experts_per_tok=3, moe_intermediate_size=24, first_k_dense_replace=1,
        routed_scaling_factor=1.0, norm_topk_prob=False, topk_method="greedy", n_group=1,
        topk_group=1, scoring_func="softmax", moe_layer_freq=1, rope_scaling=YARN,
        rope_theta=10000.0), 1),
    "deepseek-v2": ("deepseek_v2", dict(
        num_key_value_heads=4, q_lora_rank=24, kv_lora_rank=32, qk_nope_head_dim=16,
        qk_rope_head_dim=8, v_head_dim=16, n_routed_experts=8, n_shared_experts=1,
        num_experts_per_tok=3, moe_intermediate_size=24, first_k_dense_replace=1,
        routed_scaling_factor=16.0, norm_topk_prob=False, topk_method="group_limited_greedy",
        n_group=4, topk_group=2, scoring_func="softmax", moe_layer_freq=1, rope_scaling=YARN,
        rope_theta=10000.0), 2),
}
PROMPT_TOKENS = [1, 12, 45, 120]


def fill(model, seed):
    """Weights of the size that trained ones have; norms near one; everything representable in bf16."""
    generator = torch.Generator().manual_seed(seed)
    gemma = model.config.model_type == "gemma2"
    with torch.no_grad():
        for name, p in sorted(model.named_parameters()):
            noise = torch.randn(p.shape, generator=generator)
            if p.dim() == 1 and "bias" not in name:
                value = 0.25 * noise + (0.0 if gemma else 1.0)
            elif p.dim() == 1:
                value = 0.3 * noise
            elif "embed_tokens" in name:
                value = (0.35 if model.config.tie_word_embeddings else 1.0) * noise
            elif "lm_head" in name:
                value = 2.5 * noise / p.shape[-1] ** 0.5
            else:
                value = 1.3 * noise / p.shape[-1] ** 0.5
            p.copy_(value.to(torch.bfloat16).to(p.dtype))
        for name, b in model.named_buffers():
            if "e_score_correction_bias" in name:
                b.copy_(0.1 * torch.randn(b.shape, generator=generator))


def config_of(model_type, overrides):
    values = {**BASE, **overrides}
    theta = values.get("rope_theta")
    scaling = values.pop("rope_scaling", None)
    if scaling is not None:
        values["rope_scaling"] = dict(scaling)
        values["rope_parameters"] = dict(scaling)
    elif theta is not None:
        values["rope_parameters"] = dict(rope_type="default", rope_theta=theta)
    return AutoConfig.for_model(model_type, **values)


def record(name, out):
    model_type, overrides, shards = CASES[name]
    seed = sorted(CASES).index(name) + 1
    config = config_of(model_type, overrides)
    config._attn_implementation = "eager"
    config._experts_implementation = "eager"
    torch.manual_seed(seed)
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    fill(model, seed)
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)

    oracle = {}
    generator = torch.Generator().manual_seed(1000 + seed)
    prompts = [torch.randint(3, VOCAB, (n,), generator=generator) for n in PROMPT_TOKENS]
    with torch.no_grad():
        for i, prompt in enumerate(prompts):
            keep = torch.arange(len(prompt))[:: 1 if len(prompt) < 20 else 5].flip(0)
            keep = len(prompt) - 1 - keep  # rising, the last position among them
            oracle[f"prompt_{i}"] = prompt.to(torch.int32)
            oracle[f"positions_{i}"] = keep.to(torch.int32)
            oracle[f"logits_{i}"] = model(prompt[None]).logits[0][keep].float().contiguous()
        ids = prompts[1].tolist()
        greedy = []
        for _ in range(32):
            token = int(model(torch.tensor([ids + greedy])).logits[0, -1].argmax())
            greedy.append(token)
        oracle["greedy"] = torch.tensor(greedy, dtype=torch.int32)
        keeps = [oracle[f"positions_{i}"].long() for i in range(len(prompts))]
        wide = model.double()
        float64_max = max(
            float((wide(prompt[None]).logits[0][keep] - oracle[f"logits_{i}"]).abs().max())
            for i, (prompt, keep) in enumerate(zip(prompts, keeps)))
        model.to(torch.bfloat16)
        kl = []
        for i, (prompt, keep) in enumerate(zip(prompts, keeps)):
            p = torch.log_softmax(oracle[f"logits_{i}"].double(), -1)
            q = torch.log_softmax(model(prompt[None]).logits[0][keep].double(), -1)
            kl.append(float((p.exp() * (p - q)).sum(-1).mean()))
    size = sum(p.numel() for p in model.parameters()) * 2
    model.save_pretrained(folder, max_shard_size=size // shards + 4096 if shards > 1 else "1GB")
    save_file(oracle, folder / "oracle.safetensors",
              metadata={"transformers": transformers.__version__, "torch": torch.__version__,
                        "kl_bf16": json.dumps(kl), "float64_max": f"{float64_max:.2e}"})
    spread = oracle["logits_2"].std().item()
    print(f"{name}: {sum(p.numel() for p in model.parameters())} parameters, logits sd {spread:.2f}, "
          f"float32-float64 {float64_max:.1e}, KL of bf16 {max(kl):.1e}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", nargs="*")
    args = parser.parse_args()
    failed = 0
    for name in args.only or CASES:
        try:
            record(name, args.out)
        except Exception as error:  # noqa: BLE001 - the other architectures are still wanted
            failed += 1
            import traceback
            traceback.print_exc()
            print(f"{name}: FAILED {error}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
