// StepModel: the operators of one forward step of a model, for any mixed batch. Engine (what should
// this step cost), predict and emulate all use this one list.
// GEMM terms use all tokens of the step together and read their weights once; attention is summed
// over rows, prefill and decode rows apart. Counts are for the whole model on one device.
// Layers that do the same form a group, so the list has tens of entries, not thousands.
// Thread safety: const calls from any thread.
// Source: GEMM 2 m n k; causal attention and expected experts as derived in the .cpp files; latent
// attention as DeepSeek-V2, arXiv 2405.04434, section 2.1, absorbed for decode rows only.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "prony/catalog/model_spec.hpp"
#include "prony/perfmodel/operators.hpp"
#include "prony/perfmodel/precision.hpp"
#include "prony/perfmodel/step_shape.hpp"

namespace prony::perfmodel {

/// Layers with the same operators.
struct LayerGroup {
  int32_t first_layer = 0;
  int32_t count = 0;
  std::optional<int32_t> window;  // tokens a query sees; nullopt: all
  bool moe = false;
};

/// Groups in the order of their first layers. A dense model has one, Gemma-2 and gpt-oss two
/// (sliding and full), DeepSeek two (dense and mixture).
std::vector<LayerGroup> layer_groups(const catalog::ModelSpec& spec);

/// Expected number of distinct experts that `tokens` tokens reach when each chooses k of E with
/// equal probability and independently: E (1 - (1 - k/E)^tokens). Real routing is skewed and
/// reaches fewer. Requires 1 <= k <= E, tokens >= 0 (checked).
double expected_experts(int32_t experts, int32_t experts_per_token, double tokens);

class StepModel {
 public:
  /// `spec` passed the catalogue's checks. Keeps copies.
  StepModel(const catalog::ModelSpec& spec, const Precision& precision);

  /// Replaces `operators` by those of the step, in order of execution, group by group. Operators
  /// without work (no row of that kind, no row that samples) are left out; an empty step has none.
  /// Allocates only while `operators` must grow.
  void operators(const StepShape& shape, std::vector<Operator>* operators) const;
  std::vector<Operator> operators(const StepShape& shape) const;

  std::span<const LayerGroup> groups() const { return groups_; }
  const catalog::ModelSpec& spec() const { return spec_; }
  const Precision& precision() const { return precision_; }

 private:
  catalog::ModelSpec spec_;
  Precision precision_;
  std::vector<LayerGroup> groups_;
};

}  // namespace prony::perfmodel
