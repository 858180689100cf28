#include "prony/perfmodel/operators.hpp"

namespace prony::perfmodel {

std::string_view operator_name(OperatorKind kind) {
  switch (kind) {
    case OperatorKind::kEmbed:
      return "embed";
    case OperatorKind::kAttentionNorm:
      return "attention-norm";
    case OperatorKind::kQkv:
      return "qkv";
    case OperatorKind::kQkNorm:
      return "qk-norm";
    case OperatorKind::kRopeStore:
      return "rope-store";
    case OperatorKind::kAttentionPrefill:
      return "attention-prefill";
    case OperatorKind::kAttentionDecode:
      return "attention-decode";
    case OperatorKind::kOutput:
      return "output";
    case OperatorKind::kPostAttentionNorm:
      return "post-attention-norm";
    case OperatorKind::kMlpNorm:
      return "mlp-norm";
    case OperatorKind::kGateUp:
      return "gate-up";
    case OperatorKind::kActivation:
      return "activation";
    case OperatorKind::kDown:
      return "down";
    case OperatorKind::kPostMlpNorm:
      return "post-mlp-norm";
    case OperatorKind::kRouter:
      return "router";
    case OperatorKind::kExpertGateUp:
      return "expert-gate-up";
    case OperatorKind::kExpertActivation:
      return "expert-activation";
    case OperatorKind::kExpertDown:
      return "expert-down";
    case OperatorKind::kExpertCombine:
      return "expert-combine";
    case OperatorKind::kSharedGateUp:
      return "shared-gate-up";
    case OperatorKind::kSharedActivation:
      return "shared-activation";
    case OperatorKind::kSharedDown:
      return "shared-down";
    case OperatorKind::kMlaQueryDown:
      return "mla-query-down";
    case OperatorKind::kMlaQueryNorm:
      return "mla-query-norm";
    case OperatorKind::kMlaQueryUp:
      return "mla-query-up";
    case OperatorKind::kMlaKvDown:
      return "mla-kv-down";
    case OperatorKind::kMlaKvNorm:
      return "mla-kv-norm";
    case OperatorKind::kMlaKvUp:
      return "mla-kv-up";
    case OperatorKind::kMlaAbsorbQuery:
      return "mla-absorb-query";
    case OperatorKind::kMlaAbsorbValue:
      return "mla-absorb-value";
    case OperatorKind::kFinalNorm:
      return "final-norm";
    case OperatorKind::kHead:
      return "head";
  }
  return "unknown";
}

StepTotals totals(std::span<const Operator> operators) {
  StepTotals sum;
  for (const Operator& op : operators) {
    sum.flops += op.count * op.flops;
    sum.vector_flops += op.count * op.vector_flops;
    sum.weight_bytes += op.count * op.weight_bytes;
    sum.activation_bytes += op.count * op.activation_bytes;
    sum.kv_read_bytes += op.count * op.kv_read_bytes;
    sum.kv_write_bytes += op.count * op.kv_write_bytes;
  }
  return sum;
}

}  // namespace prony::perfmodel
