// Float64 reference of a dense decoder for the tests: one sequence, plain loops, from the published
// formulas. It shares with the engine only ModelSpec and the weight values, so an error in packing,
// kernels, paging or the forward pass cannot hide in both.
// Thread safety: one thread. Source: as engine/forward.hpp, engine/rope_table.hpp.
#pragma once
#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "prony/catalog/model_spec.hpp"
#include "prony/engine/tensor_source.hpp"
#include "prony/quant/bf16.hpp"

namespace prony::engine {

class ReferenceModel {
 public:
  using Vector = std::vector<double>;
  using Matrix = std::vector<Vector>;  // [outputs][inputs]

  /// `bf16`: weights, keys and values are rounded to bf16, as the engine stores them.
  ReferenceModel(const catalog::ModelSpec& spec, const TensorSource& source, bool bf16)
      : spec_(spec), source_(source), bf16_(bf16) {}

  struct Output {
    std::vector<Matrix> hidden;  // [layers + 1][tokens][hidden]: after the embedding, each layer
    Matrix logits;               // [tokens][vocab]
  };

  Output run(const std::vector<int32_t>& tokens) const {
    const Matrix embedding = load("model.embed_tokens.weight", spec_.vocab, spec_.hidden);
    Matrix x;
    for (const int32_t token : tokens) x.push_back(embedding[static_cast<size_t>(token)]);
    Output output;
    output.hidden.push_back(x);
    for (int32_t layer = 0; layer < spec_.layers; ++layer) {
      const std::string prefix = "model.layers." + std::to_string(layer) + ".";
      add(x, attention(prefix + "self_attn.",
                       rms_norms(x, load_vector(prefix + "input_layernorm.weight", spec_.hidden))));
      add(x,
          mlp(prefix + "mlp.",
              rms_norms(x, load_vector(prefix + "post_attention_layernorm.weight", spec_.hidden))));
      output.hidden.push_back(x);
    }
    const Matrix head =
        spec_.tied_embeddings ? embedding : load("lm_head.weight", spec_.vocab, spec_.hidden);
    output.logits = project(rms_norms(x, load_vector("model.norm.weight", spec_.hidden)), head, {});
    return output;
  }

 private:
  double stored(double value) const {
    const auto narrow = static_cast<float>(value);
    return bf16_ ? static_cast<double>(quant::round_to_bf16(narrow)) : value;
  }

  Matrix load(const std::string& name, int64_t rows, int64_t columns) const {
    std::vector<float> values(static_cast<size_t>(rows * columns));
    const Result<void> result = source_.read(
        {.name = name, .rows = rows, .columns = columns, .first = 0, .count = rows}, values.data());
    PRONY_CHECK(result.ok());
    Matrix matrix(static_cast<size_t>(rows));
    for (size_t i = 0; i < values.size(); ++i) {
      matrix[i / static_cast<size_t>(columns)].push_back(stored(static_cast<double>(values[i])));
    }
    return matrix;
  }
  Vector load_vector(const std::string& name, int64_t size) const { return load(name, 1, size)[0]; }

  static void add(Matrix& x, const Matrix& y) {
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t i = 0; i < x[t].size(); ++i) x[t][i] += y[t][i];
    }
  }

  Vector rms_norm(const Vector& x, const Vector& weight) const {
    double squares = 0;
    for (const double value : x) squares += value * value;
    const double inverse =
        1 / std::sqrt(squares / static_cast<double>(x.size()) + spec_.rms_epsilon);
    Vector y;
    for (size_t i = 0; i < x.size(); ++i) y.push_back(x[i] * inverse * weight[i]);
    return y;
  }
  Matrix rms_norms(const Matrix& x, const Vector& weight) const {
    Matrix y;
    for (const Vector& row : x) y.push_back(rms_norm(row, weight));
    return y;
  }

  static Matrix project(const Matrix& x, const Matrix& weight, const Vector& bias) {
    Matrix y;
    for (const Vector& row : x) {
      Vector out;
      for (size_t n = 0; n < weight.size(); ++n) {
        double sum = bias.empty() ? 0 : bias[n];
        for (size_t k = 0; k < row.size(); ++k) sum += row[k] * weight[n][k];
        out.push_back(sum);
      }
      y.push_back(out);
    }
    return y;
  }
  Matrix linear(const std::string& name, const Matrix& x, int64_t outputs, bool has_bias) const {
    return project(x, load(name + ".weight", outputs, static_cast<int64_t>(x[0].size())),
                   has_bias ? load_vector(name + ".bias", outputs) : Vector{});
  }

  double frequency(int32_t pair) const {
    const catalog::Rope& rope = spec_.rope;
    const double base = std::pow(rope.theta, -2.0 * pair / spec_.head_dim);
    if (rope.type == catalog::RopeType::kLinear) return base / rope.factor;
    if (rope.type != catalog::RopeType::kLlama3) return base;
    const double wavelength = 2 * std::numbers::pi / base;
    const double context = rope.original_max_position;
    if (wavelength < context / rope.high_freq_factor) return base;
    if (wavelength > context / rope.low_freq_factor) return base / rope.factor;
    const double smooth = (context / wavelength - rope.low_freq_factor) /
                          (rope.high_freq_factor - rope.low_freq_factor);
    return (1 - smooth) * base / rope.factor + smooth * base;
  }

  /// One head of one token, normed if the model does that, rotated to its position.
  Vector position_head(const Vector& projected, size_t head, const Vector& norm,
                       size_t position) const {
    const auto dim = static_cast<size_t>(spec_.head_dim);
    const auto begin = projected.begin() + static_cast<int64_t>(head * dim);
    Vector x(begin, begin + static_cast<int64_t>(dim));
    if (!norm.empty()) x = rms_norm(x, norm);
    Vector y = x;
    for (size_t i = 0; i < dim / 2; ++i) {
      const double angle = static_cast<double>(position) * frequency(static_cast<int32_t>(i));
      y[i] = x[i] * std::cos(angle) - x[i + dim / 2] * std::sin(angle);
      y[i + dim / 2] = x[i + dim / 2] * std::cos(angle) + x[i] * std::sin(angle);
    }
    return y;
  }

  Matrix attention(const std::string& prefix, const Matrix& x) const {
    const auto dim = static_cast<size_t>(spec_.head_dim);
    const auto heads = static_cast<size_t>(spec_.heads);
    const auto kv_heads = static_cast<size_t>(spec_.kv_heads);
    const Matrix q = linear(prefix + "q_proj", x, spec_.heads * spec_.head_dim, spec_.qkv_bias);
    const Matrix k = linear(prefix + "k_proj", x, spec_.kv_heads * spec_.head_dim, spec_.qkv_bias);
    const Matrix v = linear(prefix + "v_proj", x, spec_.kv_heads * spec_.head_dim, spec_.qkv_bias);
    const Vector q_norm =
        spec_.qk_norm ? load_vector(prefix + "q_norm.weight", spec_.head_dim) : Vector{};
    const Vector k_norm =
        spec_.qk_norm ? load_vector(prefix + "k_norm.weight", spec_.head_dim) : Vector{};
    const double scale =
        spec_.attention_scale.value_or(1 / std::sqrt(static_cast<double>(spec_.head_dim)));
    Matrix out(x.size(), Vector(heads * dim, 0.0));
    for (size_t head = 0; head < heads; ++head) {
      const size_t kv_head = head / (heads / kv_heads);
      Matrix keys;
      for (size_t t = 0; t < x.size(); ++t) {
        keys.push_back(position_head(k[t], kv_head, k_norm, t));
        for (double& value : keys.back()) value = stored(value);
      }
      for (size_t t = 0; t < x.size(); ++t) {
        const Vector query = position_head(q[t], head, q_norm, t);
        Vector weights;
        for (size_t p = 0; p <= t; ++p) {
          double score = 0;
          for (size_t i = 0; i < dim; ++i) score += query[i] * keys[p][i];
          weights.push_back(score * scale);
        }
        const double largest = *std::max_element(weights.begin(), weights.end());
        double sum = 0;
        for (double& weight : weights) sum += weight = std::exp(weight - largest);
        for (size_t p = 0; p <= t; ++p) {
          for (size_t i = 0; i < dim; ++i) {
            out[t][head * dim + i] += weights[p] / sum * stored(v[p][kv_head * dim + i]);
          }
        }
      }
    }
    return linear(prefix + "o_proj", out, spec_.hidden, spec_.o_bias);
  }

  Matrix mlp(const std::string& prefix, const Matrix& x) const {
    Matrix gate = linear(prefix + "gate_proj", x, spec_.intermediate, spec_.mlp_bias);
    const Matrix up = linear(prefix + "up_proj", x, spec_.intermediate, spec_.mlp_bias);
    for (size_t t = 0; t < gate.size(); ++t) {
      for (size_t i = 0; i < gate[t].size(); ++i) {
        gate[t][i] = gate[t][i] / (1 + std::exp(-gate[t][i])) * up[t][i];
      }
    }
    return linear(prefix + "down_proj", gate, spec_.hidden, spec_.mlp_bias);
  }

  catalog::ModelSpec spec_;
  const TensorSource& source_;
  bool bf16_;
};

}  // namespace prony::engine
