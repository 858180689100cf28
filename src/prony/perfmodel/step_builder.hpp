// StepBuilder: appends the operators of one layer group; the working part of StepModel, split over
// attention_operators.cpp and mlp_operators.cpp. Internal to perfmodel.
// Thread safety: none; one per call.
#pragma once
#include <vector>

#include "prony/perfmodel/step_model.hpp"

namespace prony::perfmodel {

class StepBuilder {
 public:
  StepBuilder(const catalog::ModelSpec& spec, const Precision& precision, const StepShape& shape,
              std::vector<Operator>* out)
      : spec_(spec),
        precision_(precision),
        shape_(shape),
        tokens_(static_cast<double>(shape.tokens())),
        out_(*out) {}

  void embed();
  void layers(const LayerGroup& group, int32_t index);
  void head();

 private:
  // attention_operators.cpp
  void grouped_attention();
  void latent_attention();
  void latent_projections();
  void latent_prefill();
  void latent_decode();
  // mlp_operators.cpp
  void dense_mlp(OperatorKind gate_up, OperatorKind down, OperatorKind activation,
                 double intermediate, bool bias);
  void mixture();

  // Appends and returns an operator of the current group.
  Operator& add(OperatorKind kind);
  // GEMM that reads [m, k] and writes [m, n] for each of `batch` weights [k, n].
  Operator& gemm(OperatorKind kind, double m, double n, double k, double batch,
                 double bytes_per_weight);
  // Adds a bias of `elements` over `rows` rows.
  void add_bias(Operator& op, double elements, double rows) const;
  // RMSNorm over tokens * width elements; `width` weights. With residual: reads the branch and the
  // residual stream, writes their sum and its norm.
  void norm(OperatorKind kind, double width, bool residual);
  // Reads `read` and writes `written` activations [elements].
  void activations(Operator& op, double read, double written) const {
    op.activation_bytes += (read + written) * precision_.activation;
  }
  // Operations of softmax over `pairs` scores in each of the heads.
  double softmax_ops(double pairs) const;

  const catalog::ModelSpec& spec_;
  const Precision& precision_;
  const StepShape& shape_;
  const double tokens_;
  std::vector<Operator>& out_;
  std::optional<int32_t> window_;
  int32_t group_ = kNoGroup;
  int32_t count_ = 1;
};

}  // namespace prony::perfmodel
