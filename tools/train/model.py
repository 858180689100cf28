"""The house model in PyTorch: a Llama decoder whose parameters carry Hugging Face's names.

`Config` is config.json; `House` the network; `save` and `load` write and read a Hugging Face folder
(safetensors written by hand: eight bytes of header length, a JSON header, the raw tensors), so that
neither `transformers` nor `safetensors` is needed. With `experts` > 0 the feed-forward layers are
Mixtral's: a router picks `experts_per_token` of them for each token.
"""
import dataclasses
import json
import math
import pathlib

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


@dataclasses.dataclass
class Config:
    vocab_size: int = 8192
    hidden_size: int = 384
    layers: int = 6
    heads: int = 6
    kv_heads: int = 2
    head_dim: int = 64
    ffn_size: int = 768
    context: int = 8192
    rope_theta: float = 100000.0
    norm_eps: float = 1e-5
    experts: int = 0
    experts_per_token: int = 2

    def to_hf(self, bos, eos):
        moe = self.experts > 0
        out = {
            "architectures": ["MixtralForCausalLM" if moe else "LlamaForCausalLM"],
            "model_type": "mixtral" if moe else "llama", "vocab_size": self.vocab_size,
            "hidden_size": self.hidden_size, "intermediate_size": self.ffn_size,
            "num_hidden_layers": self.layers, "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads, "head_dim": self.head_dim,
            "max_position_embeddings": self.context, "rope_theta": self.rope_theta,
            "rms_norm_eps": self.norm_eps, "hidden_act": "silu", "tie_word_embeddings": True,
            "attention_bias": False, "attention_dropout": 0.0, "mlp_bias": False,
            "initializer_range": 0.02, "use_cache": True, "torch_dtype": "bfloat16",
            "bos_token_id": bos, "eos_token_id": eos}
        if moe:
            out.update(num_local_experts=self.experts, num_experts_per_tok=self.experts_per_token)
        return out

    @staticmethod
    def from_hf(folder):
        c = json.loads((pathlib.Path(folder) / "config.json").read_text())
        return Config(c["vocab_size"], c["hidden_size"], c["num_hidden_layers"], c["num_attention_heads"],
                      c["num_key_value_heads"], c["head_dim"], c["intermediate_size"],
                      c["max_position_embeddings"], c["rope_theta"], c["rms_norm_eps"],
                      c.get("num_local_experts", 0), c.get("num_experts_per_tok", 2))


class RMSNorm(nn.Module):
    def __init__(self, size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        y = x.float()
        y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + self.eps)
        return y.to(x.dtype) * self.weight.to(x.dtype)


class Linear(nn.Linear):
    """A linear layer without bias whose master weights stay fp32 while it multiplies in x's type."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs, bias=False)

    def forward(self, x):
        return F.linear(x, self.weight.to(x.dtype))


def rotate(x, cos, sin):
    """Rotary positions in Hugging Face's layout: the two halves of a head form the pairs."""
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Attention(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.q_proj = Linear(c.hidden_size, c.heads * c.head_dim)
        self.k_proj = Linear(c.hidden_size, c.kv_heads * c.head_dim)
        self.v_proj = Linear(c.hidden_size, c.kv_heads * c.head_dim)
        self.o_proj = Linear(c.heads * c.head_dim, c.hidden_size)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        shape = (batch, length, -1, self.c.head_dim)
        q = rotate(self.q_proj(x).view(shape).transpose(1, 2), cos, sin)
        k = rotate(self.k_proj(x).view(shape).transpose(1, 2), cos, sin)
        v = self.v_proj(x).view(shape).transpose(1, 2)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return self.o_proj(y.transpose(1, 2).reshape(batch, length, -1))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.gate_proj = Linear(c.hidden_size, c.ffn_size)
        self.up_proj = Linear(c.hidden_size, c.ffn_size)
        self.down_proj = Linear(c.ffn_size, c.hidden_size)

    def forward(self, x):
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Expert(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.w1 = Linear(c.hidden_size, c.ffn_size)
        self.w2 = Linear(c.ffn_size, c.hidden_size)
        self.w3 = Linear(c.hidden_size, c.ffn_size)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class SparseMlp(nn.Module):
    """Mixtral's block. Every expert is computed and the unchosen ones weigh zero: at this size the
    dense form is faster than gathering, and it is exact."""

    def __init__(self, c):
        super().__init__()
        self.gate = Linear(c.hidden_size, c.experts)
        self.experts = nn.ModuleList(Expert(c) for _ in range(c.experts))
        self.per_token = c.experts_per_token
        self.balance_loss = torch.zeros(())

    def forward(self, x):
        probability = F.softmax(self.gate(x).float(), dim=-1)
        top, chosen = probability.topk(self.per_token, dim=-1)
        weight = torch.zeros_like(probability).scatter(-1, chosen, top / top.sum(-1, keepdim=True))
        # Switch Transformer's balance term: experts' shares of tokens times their mean probability.
        share = (weight > 0).float().flatten(0, -2).mean(0) / self.per_token
        self.balance_loss = len(self.experts) * (share * probability.flatten(0, -2).mean(0)).sum()
        return sum(e(x) * weight[..., i:i + 1].to(x.dtype) for i, e in enumerate(self.experts))


class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.input_layernorm = RMSNorm(c.hidden_size, c.norm_eps)
        self.self_attn = Attention(c)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.norm_eps)
        if c.experts:
            self.block_sparse_moe = SparseMlp(c)
        else:
            self.mlp = Mlp(c)
        self.sparse = c.experts > 0

    def forward(self, x, cos, sin):
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        ffn = self.block_sparse_moe if self.sparse else self.mlp
        return x + ffn(self.post_attention_layernorm(x))


class Trunk(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.embed_tokens = nn.Embedding(c.vocab_size, c.hidden_size)
        self.layers = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.norm = RMSNorm(c.hidden_size, c.norm_eps)


class House(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.config = c
        self.model = Trunk(c)
        for name, p in self.named_parameters():
            if p.dim() == 2:
                std = 0.02
                if name.endswith(("o_proj.weight", "down_proj.weight", "w2.weight")):
                    std /= math.sqrt(2 * c.layers)
                nn.init.normal_(p, std=std)

    def rope(self, length, device, dtype):
        half = torch.arange(0, self.config.head_dim, 2, device=device, dtype=torch.float32)
        inverse = self.config.rope_theta ** (-half / self.config.head_dim)
        angle = torch.outer(torch.arange(length, device=device, dtype=torch.float32), inverse)
        return angle.cos().to(dtype), angle.sin().to(dtype)

    def hidden(self, tokens, dtype=torch.float32):
        """The normed states that the tied head multiplies, [batch, length, hidden]."""
        x = self.model.embed_tokens(tokens).to(dtype)
        cos, sin = self.rope(tokens.shape[1], tokens.device, dtype)
        for block in self.model.layers:
            x = block(x, cos, sin)
        return self.model.norm(x)

    def forward(self, tokens, dtype=torch.float32):
        return F.linear(self.hidden(tokens, dtype), self.model.embed_tokens.weight.to(dtype))


# --- Hugging Face folder ------------------------------------------------------------------------

def save(model, folder, bos, eos):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    header, parts, at = {"__metadata__": {"format": "pt"}}, [], 0
    for name, p in sorted(model.state_dict().items()):
        raw = p.detach().to(torch.bfloat16).cpu().contiguous().view(torch.int16).numpy().tobytes()
        header[name] = {"dtype": "BF16", "shape": list(p.shape), "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with (folder / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for raw in parts:
            file.write(raw)
    (folder / "config.json").write_text(json.dumps(model.config.to_hf(bos, eos), indent=2) + "\n")
    (folder / "generation_config.json").write_text(json.dumps({
        "bos_token_id": bos, "eos_token_id": eos, "pad_token_id": eos[0], "do_sample": True,
        "temperature": 0.7, "top_k": 40}, indent=2) + "\n")


def load(folder):
    """The model of a folder in fp32, its bf16 weights widened."""
    folder = pathlib.Path(folder)
    model = House(Config.from_hf(folder))
    blob = (folder / "model.safetensors").read_bytes()
    size = int.from_bytes(blob[:8], "little")
    state = {}
    for name, t in json.loads(blob[8:8 + size]).items():
        if name == "__metadata__":
            continue
        first, last = t["data_offsets"]
        raw = np.frombuffer(blob, np.int16, (last - first) // 2, 8 + size + first)
        state[name] = torch.from_numpy(raw.copy()).view(torch.bfloat16).reshape(t["shape"]).float()
    model.load_state_dict(state)
    return model
