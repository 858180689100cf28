// ModelSpec: the shape of a decoder-only transformer as data, read from a Hugging Face config.json
// or from data/models. One generic forward pass (engine), one operator list (perfmodel) and one
// memory model are driven by it; there is no class per model. Only what differs from a plain Llama
// has to be set: every flag's default is Llama's behaviour.
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
  double theta = 10'000;                   // base of the inverse frequencies
  double factor = 1;                       // linear, llama3, yarn
  double low_freq_factor = 1;              // llama3
  double high_freq_factor = 4;             // llama3
  int32_t original_max_position = 0;       // llama3, yarn: context of the pre-training
  double beta_fast = 32;                   // yarn: rotations above which nothing is interpolated
  double beta_slow = 1;                    // yarn: rotations below which everything is
  bool truncate = true;                    // yarn: correction range rounded to whole dimensions
  std::optional<double> attention_factor;  // yarn: stated; absent: derived from factor and mscale
  // yarn of DeepSeek: mscale scales cos and sin, mscale_all_dim (squared) the softmax. 0: absent.
  double mscale = 0;
  double mscale_all_dim = 0;
  bool operator==(const Rope&) const = default;
};

enum class RouterScoring { kSoftmax, kSigmoid };

/// Routed experts of a mixture; absent in a dense model.
struct Moe {
  int32_t experts = 0;              // routed experts per layer
  int32_t experts_per_token = 0;    // k
  int32_t intermediate = 0;         // of one routed expert
  int32_t shared_intermediate = 0;  // of all shared experts together; 0: none
  int32_t dense_layers = 0;         // the first layers keep a dense MLP
  bool normalize_top_k = true;      // weights of the chosen k sum to one
  bool shared_gate = false;         // Qwen2-MoE: sigmoid gate [1, hidden] on the shared experts
  bool router_bias = false;  // one number per expert: gpt-oss's bias, DeepSeek-V3's correction
  bool expert_bias = false;  // gpt-oss: bias on gate, up and down of every expert
  RouterScoring scoring = RouterScoring::kSoftmax;
  double routed_scaling = 1;  // DeepSeek: factor on the routed experts' sum
  int32_t groups = 1;         // DeepSeek: experts are chosen inside the best groups only
  int32_t groups_per_token = 1;
  bool operator==(const Moe&) const = default;
};

/// Multi-head latent attention (DeepSeek V2, V3); absent otherwise.
struct Mla {
  int32_t q_lora_rank = 0;  // 0: no compression of queries
  int32_t kv_lora_rank = 0;
  int32_t qk_nope_head_dim = 0;
  int32_t qk_rope_head_dim = 0;
  int32_t v_head_dim = 0;
  bool operator==(const Mla&) const = default;
};

enum class Activation {
  kSilu,         // silu(gate) * up
  kGeluTanh,     // gelu_tanh(gate) * up (Gemma)
  kSwigluClamp,  // gpt-oss: clamped gate and up, gate * sigmoid(1.702 gate) * (up + 1)
};

/// How the published weights are stored; what a run uses is its own choice.
enum class WeightFormat {
  kF32,
  kF16,
  kBf16,
  kFp8Block128,   // e4m3 linear layers with one fp32 scale per 128 x 128 block, the rest bf16
  kMxfp4Experts,  // routed experts in mxfp4 (blocks of 32 with an 8-bit scale), the rest bf16
};

struct ModelSpec {
  std::string id;            // catalogue id, folder name or preset; "dummy:..." if so asked
  std::string architecture;  // as in config.json: "LlamaForCausalLM"
  std::string ref;           // where the numbers come from
  int32_t layers = 0;
  int32_t hidden = 0;  // width of the residual stream
  int32_t heads = 0;   // query heads
  int32_t kv_heads = 0;
  int32_t head_dim = 0;      // of queries and keys; MLA: qk_nope + qk_rope
  int32_t intermediate = 0;  // of the dense MLP, one of gate and up; unused if all layers are MoE
  int32_t vocab = 0;         // rows of the embedding
  int32_t max_context = 0;   // tokens
  double rms_epsilon = 1e-5;
  bool tied_embeddings = false;
  bool qkv_bias = false;                  // Qwen2
  bool qk_norm = false;                   // Qwen3: RMSNorm per head before RoPE
  std::optional<int32_t> sliding_window;  // tokens a query sees, itself included
  bool sliding_alternates = false;  // even layers slide, odd ones see everything (Gemma-2, gpt-oss)
  std::optional<double> attention_softcap, logit_softcap;
  Rope rope;
  std::optional<Moe> moe;
  std::optional<Mla> mla;
  std::vector<int32_t> eos_ids;
  std::optional<int32_t> bos_id;

  // What later families add; all defaults are Llama's.
  std::string huggingface_id;             // "meta-llama/Llama-3.1-8B"; empty if unknown
  int32_t sliding_first_layer = 0;        // Qwen2: layers before this one see everything
  bool o_bias = false;                    // bias of the attention's output projection
  bool mlp_bias = false;                  // bias of the dense MLP's three projections
  bool attention_sinks = false;           // gpt-oss: one learned logit per head in every softmax
  bool sandwich_norms = false;            // Gemma-2: norms after attention and MLP too, 4 a layer
  bool norm_plus_one = false;             // Gemma: RMSNorm multiplies by (1 + weight), in fp32
  bool scaled_embedding = false;          // Gemma: embeddings are multiplied by sqrt(hidden)
  std::optional<double> attention_scale;  // softmax scale where it is not 1/sqrt(head_dim)
  Activation activation = Activation::kSilu;
  int32_t mtp_layers = 0;  // DeepSeek-V3: multi-token prediction layers, never in counts
  WeightFormat weight_format = WeightFormat::kBf16;
  std::optional<double> published_parameters;         // of the model card, an oracle for tests
  std::optional<double> published_active_parameters;  // per token, as the card counts them
  bool operator==(const ModelSpec&) const = default;
};

/// Tokens a query of `layer` may see (itself included), or nullopt for all.
std::optional<int32_t> attention_window(const ModelSpec& spec, int32_t layer);

/// Layers with a limited window; the others see everything.
int32_t sliding_layers(const ModelSpec& spec);

}  // namespace prony::catalog
