// Operators of the MLP: dense, and the mixture of experts.
#include "prony/core/check.hpp"
#include "prony/perfmodel/step_builder.hpp"

namespace prony::perfmodel {
namespace {

double activation_ops(catalog::Activation activation) {
  switch (activation) {
    case catalog::Activation::kSilu:
      return kSiluMulOps;
    case catalog::Activation::kGeluTanh:
      return kGeluTanhOps;
    case catalog::Activation::kSwigluClamp:
      return kClampedSwigluOps;
  }
  PRONY_CHECK(false, "unknown activation");
}

}  // namespace

void StepBuilder::dense_mlp(OperatorKind gate_up, OperatorKind down, OperatorKind activation,
                            double intermediate, bool bias) {
  Operator& up = gemm(gate_up, tokens_, 2 * intermediate, spec_.hidden, 1, precision_.linear);
  if (bias) add_bias(up, 2 * intermediate, tokens_);
  Operator& act = add(activation);
  act.vector_flops = activation_ops(spec_.activation) * tokens_ * intermediate;
  activations(act, 2 * tokens_ * intermediate, tokens_ * intermediate);
  Operator& out = gemm(down, tokens_, spec_.hidden, intermediate, 1, precision_.linear);
  if (bias) add_bias(out, spec_.hidden, tokens_);
}

void StepBuilder::mixture() {
  const catalog::Moe& moe = *spec_.moe;
  const double hidden = spec_.hidden, experts = moe.experts, width = moe.intermediate;
  Operator& router = gemm(OperatorKind::kRouter, tokens_, experts, hidden, 1, precision_.other);
  router.vector_flops = kScoreOps * tokens_ * experts;
  if (moe.router_bias) add_bias(router, experts, tokens_);

  const double routed = tokens_ * moe.experts_per_token;  // rows over all experts
  const double reached = expected_experts(moe.experts, moe.experts_per_token, tokens_);
  const double rows = routed / reached;
  Operator& up =
      gemm(OperatorKind::kExpertGateUp, rows, 2 * width, hidden, reached, precision_.expert);
  if (moe.expert_bias) {
    up.weight_bytes += reached * 2 * width * precision_.other;
    up.vector_flops += routed * 2 * width;
  }
  Operator& act = add(OperatorKind::kExpertActivation);
  act.vector_flops = activation_ops(spec_.activation) * routed * width;
  activations(act, 2 * routed * width, routed * width);
  Operator& down = gemm(OperatorKind::kExpertDown, rows, hidden, width, reached, precision_.expert);
  if (moe.expert_bias) {
    down.weight_bytes += reached * hidden * precision_.other;
    down.vector_flops += routed * hidden;
  }
  Operator& combine = add(OperatorKind::kExpertCombine);
  combine.vector_flops = kCombineOps * routed * hidden;
  activations(combine, routed * hidden, tokens_ * hidden);

  if (moe.shared_intermediate == 0) return;
  dense_mlp(OperatorKind::kSharedGateUp, OperatorKind::kSharedDown, OperatorKind::kSharedActivation,
            moe.shared_intermediate, false);
  if (moe.shared_gate) {  // one dot product a token and a sigmoid on the result, with the last GEMM
    Operator& shared = out_.back();
    shared.flops += 2 * tokens_ * hidden;
    shared.vector_flops += tokens_ * (hidden + 2);
    shared.weight_bytes += hidden * precision_.other;
    activations(shared, tokens_ * hidden, 0);
  }
}

}  // namespace prony::perfmodel
