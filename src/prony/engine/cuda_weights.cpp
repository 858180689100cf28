#include "prony/engine/cuda_weights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <optional>
#include <vector>

#include "prony/engine/rope_table.hpp"
#include "prony/engine/support.hpp"
#include "prony/quant/bf16.hpp"

namespace prony::engine {
namespace {

using kernels::cuda::Tensor;

// What a device kernel lacks beside what the CPU engine lacks; empty: nothing.
std::string missing_feature(const catalog::ModelSpec& spec) {
  if (spec.mla) return "latent attention";
  if (spec.moe) return "experts";
  if (spec.sliding_window) return "sliding windows";
  if (spec.attention_softcap || spec.logit_softcap) return "softcaps";
  if (spec.sandwich_norms || spec.norm_plus_one || spec.scaled_embedding) return "norms of gemma";
  if (spec.activation != catalog::Activation::kSilu) return "an activation other than silu";
  if (spec.o_bias || spec.mlp_bias) return "biases of output or mlp projections";
  constexpr std::array kHeadDims = {16, 32, 64, 128};
  if (std::find(kHeadDims.begin(), kHeadDims.end(), spec.head_dim) == kHeadDims.end()) {
    return fmt::format("a head_dim of {} (16, 32, 64 or 128)", spec.head_dim);
  }
  if (spec.heads / spec.kv_heads > 16) {
    return fmt::format("{} query heads a kv head (at most 16)", spec.heads / spec.kv_heads);
  }
  if (spec.hidden % 8 != 0 || spec.hidden > 16384 || spec.intermediate % 8 != 0) {
    return fmt::format("a width of {} and {} (multiples of 8, hidden at most 16384)", spec.hidden,
                       spec.intermediate);
  }
  return {};
}

class Sender {
 public:
  Sender(const kernels::cuda::Api& api, kernels::cuda::Engine* engine, const TensorSource& source,
         kernels::ThreadPool& pool)
      : api_(api), engine_(engine), source_(source), pool_(pool) {}

  /// Rows [first, first + rows) of a device matrix of `columns` come from the tensor.
  void matrix(const std::string& name, Tensor tensor, int32_t layer, int64_t first, int64_t rows,
              int64_t columns) {
    if (error_) return;
    constexpr int64_t kPieceElements = 1 << 20;
    const int64_t grain = std::max<int64_t>(1, kPieceElements / columns);
    pool_.run(rows, grain, [&](int64_t begin, int64_t end) {
      std::vector<float> values(static_cast<size_t>(grain * columns));
      std::vector<quant::Bf16> rounded(values.size());
      for (int64_t row = begin; row < end; row += grain) {
        const int64_t count = std::min(grain, end - row);
        const auto read = source_.read(
            {.name = name, .rows = rows, .columns = columns, .first = row, .count = count},
            values.data());
        if (!read.ok()) return note(read.error());
        const int64_t elements = count * columns;
        for (int64_t i = 0; i < elements; ++i) {
          rounded[static_cast<size_t>(i)] = quant::to_bf16(values[static_cast<size_t>(i)]);
        }
        send(tensor, layer, (first + row) * columns, elements, rounded.data());
      }
    });
  }

  void vector(const std::string& name, Tensor tensor, int32_t layer, int64_t first, int64_t size) {
    if (error_) return;
    std::vector<float> values(static_cast<size_t>(size));
    const auto read = source_.read(
        {.name = name, .rows = 1, .columns = size, .first = 0, .count = 1}, values.data());
    if (!read.ok()) return note(read.error());
    for (float& value : values) value = quant::round_to_bf16(value);
    send(tensor, layer, first, size, values.data());
  }

  void send(Tensor tensor, int32_t layer, int64_t first, int64_t count, const void* data) {
    std::array<char, 400> text{};
    if (api_.upload(engine_, tensor, layer, first, count, data, text.data(),
                    static_cast<uint32_t>(text.size())) != 0) {
      note(environment_error(fmt::format("cuda: {}", text.data())));
    }
  }

  Result<void> result() const {
    if (error_) return *error_;
    return {};
  }

 private:
  void note(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!error_) error_ = error;
  }

  const kernels::cuda::Api& api_;
  kernels::cuda::Engine* engine_;
  const TensorSource& source_;
  kernels::ThreadPool& pool_;
  std::mutex mutex_;
  std::optional<Error> error_;
};

void send_layer(Sender& sender, const catalog::ModelSpec& spec, int32_t layer) {
  const int64_t hidden = spec.hidden, inner = spec.intermediate, dim = spec.head_dim;
  const int64_t q = spec.heads * dim, kv = spec.kv_heads * dim;
  const std::string prefix = fmt::format("model.layers.{}.", layer);
  const std::string attention = prefix + "self_attn.", mlp = prefix + "mlp.";
  sender.vector(prefix + "input_layernorm.weight", Tensor::kInputNorm, layer, 0, hidden);
  sender.vector(prefix + "post_attention_layernorm.weight", Tensor::kMlpNorm, layer, 0, hidden);
  int64_t first = 0;
  for (const auto& [name, rows] : {std::pair{"q_proj", q}, {"k_proj", kv}, {"v_proj", kv}}) {
    sender.matrix(fmt::format("{}{}.weight", attention, name), Tensor::kQkv, layer, first, rows,
                  hidden);
    if (spec.qkv_bias) {
      sender.vector(fmt::format("{}{}.bias", attention, name), Tensor::kQkvBias, layer, first,
                    rows);
    }
    first += rows;
  }
  if (spec.qk_norm) {
    sender.vector(attention + "q_norm.weight", Tensor::kQNorm, layer, 0, dim);
    sender.vector(attention + "k_norm.weight", Tensor::kKNorm, layer, 0, dim);
  }
  sender.matrix(attention + "o_proj.weight", Tensor::kO, layer, 0, hidden, q);
  sender.matrix(mlp + "gate_proj.weight", Tensor::kGateUp, layer, 0, inner, hidden);
  sender.matrix(mlp + "up_proj.weight", Tensor::kGateUp, layer, inner, inner, hidden);
  sender.matrix(mlp + "down_proj.weight", Tensor::kDown, layer, 0, hidden, inner);
}

Result<void> send_rope(Sender& sender, const catalog::ModelSpec& spec, int32_t positions) {
  kernels::Arena planning;
  (void)RopeTable(spec.rope, spec.head_dim, positions, planning);
  Result<kernels::Pages> pages = kernels::Pages::create(planning.used_bytes(), false);
  if (!pages.ok()) return pages.error();
  kernels::Arena arena(std::move(pages).value());
  const RopeTable table(spec.rope, spec.head_dim, positions, arena);
  // Both lie as the device has them: [positions][half].
  sender.send(Tensor::kCosine, 0, 0, positions * table.half(), table.cosine(0));
  sender.send(Tensor::kSine, 0, 0, positions * table.half(), table.sine(0));
  return {};
}

}  // namespace

kernels::cuda::ModelShape cuda_shape(const catalog::ModelSpec& spec) {
  return {.layers = spec.layers,
          .hidden = spec.hidden,
          .heads = spec.heads,
          .kv_heads = spec.kv_heads,
          .head_dim = spec.head_dim,
          .intermediate = spec.intermediate,
          .vocab = spec.vocab,
          .tied_embeddings = spec.tied_embeddings ? 1 : 0,
          .qkv_bias = spec.qkv_bias ? 1 : 0,
          .qk_norm = spec.qk_norm ? 1 : 0,
          .rms_epsilon = static_cast<float>(spec.rms_epsilon),
          .attention_scale = static_cast<float>(
              spec.attention_scale.value_or(1 / std::sqrt(static_cast<double>(spec.head_dim))))};
}

Result<void> check_supported_by_cuda(const catalog::ModelSpec& spec) {
  if (const auto ok = check_supported(spec); !ok.ok()) return ok.error();
  const std::string missing = missing_feature(spec);
  if (missing.empty()) return {};
  return invalid_argument(fmt::format(
      "model {}: found {}, expected a dense decoder of the families llama, mistral or qwen on cuda",
      spec.id, missing));
}

Result<void> upload_weights(const kernels::cuda::Api& api, kernels::cuda::Engine* engine,
                            const catalog::ModelSpec& spec, int32_t max_context,
                            const TensorSource& source, kernels::ThreadPool& pool) {
  Sender sender(api, engine, source, pool);
  sender.matrix("model.embed_tokens.weight", Tensor::kEmbedding, 0, 0, spec.vocab, spec.hidden);
  for (int32_t layer = 0; layer < spec.layers; ++layer) send_layer(sender, spec, layer);
  sender.vector("model.norm.weight", Tensor::kFinalNorm, 0, 0, spec.hidden);
  if (!spec.tied_embeddings) {
    sender.matrix("lm_head.weight", Tensor::kHead, 0, 0, spec.vocab, spec.hidden);
  }
  if (const auto sent = send_rope(sender, spec, max_context); !sent.ok()) return sent.error();
  return sender.result();
}

}  // namespace prony::engine
