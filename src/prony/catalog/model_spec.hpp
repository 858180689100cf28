// ModelSpec: the shape of a decoder-only transformer as data, read from a Hugging Face config.json
// or from data/models. One generic forward pass (engine), one operator list (perfmodel) and one
// memory model are driven by it; there is no class per model.
// Thread safety: a value. Source of the field meanings: transformers' configuration classes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace prony::catalog {

enum class RopeType { kNone, kDefault, kLinear, kLlama3, kYarn };

struct Rope {
  RopeType type = RopeType::kDefault;
  double theta = 10'000;                     // base of the inverse frequencies
  double factor = 1;                         // linear, llama3, yarn
  double low_freq_factor = 1;                // llama3
  double high_freq_factor = 4;               // llama3
  int32_t original_max_position = 0;         // llama3, yarn: context of the pre-training
};

/// Routed experts of a mixture; absent in a dense model.
struct Moe {
  int32_t experts = 0;               // routed experts per layer
  int32_t experts_per_token = 0;     // k
  int32_t intermediate = 0;          // of one routed expert
  int32_t shared_intermediate = 0;   // of all shared experts together; 0: none
  int32_t dense_layers = 0;          // the first layers keep a dense MLP
  bool normalize_top_k = true;       // weights of the chosen k sum to one
};

/// Multi-head latent attention (DeepSeek V2, V3); absent otherwise.
struct Mla {
  int32_t q_lora_rank = 0;       // 0: no compression of queries
  int32_t kv_lora_rank = 0;
  int32_t qk_nope_head_dim = 0;
  int32_t qk_rope_head_dim = 0;
  int32_t v_head_dim = 0;
};

struct ModelSpec {
  std::string id;             // catalogue id, folder name or preset
  std::string architecture;   // as in config.json: "LlamaForCausalLM"
  std::string ref;            // where the numbers come from
  int32_t layers = 0;
  int32_t hidden = 0;         // width of the residual stream
  int32_t heads = 0;          // query heads
  int32_t kv_heads = 0;
  int32_t head_dim = 0;
  int32_t intermediate = 0;   // of the dense MLP, one of gate and up
  int32_t vocab = 0;          // rows of the embedding
  int32_t max_context = 0;    // tokens
  double rms_epsilon = 1e-5;
  bool tied_embeddings = false;
  bool qkv_bias = false;      // Qwen2
  bool qk_norm = false;       // Qwen3: RMSNorm per head before RoPE
  std::optional<int32_t> sliding_window;  // tokens
  bool sliding_alternates = false;        // every other layer attends to everything (Gemma-2)
  std::optional<double> attention_softcap, logit_softcap;
  Rope rope;
  std::optional<Moe> moe;
  std::optional<Mla> mla;
  std::vector<int32_t> eos_ids;
  std::optional<int32_t> bos_id;
};

}  // namespace prony::catalog
