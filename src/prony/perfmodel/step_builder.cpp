#include "prony/perfmodel/step_builder.hpp"

namespace prony::perfmodel {

Operator& StepBuilder::add(OperatorKind kind) {
  Operator& op = out_.emplace_back();
  op.kind = kind;
  op.group = group_;
  op.count = count_;
  return op;
}

Operator& StepBuilder::gemm(OperatorKind kind, double m, double n, double k, double batch,
                            double bytes_per_weight) {
  Operator& op = add(kind);
  op.m = m;
  op.n = n;
  op.k = k;
  op.batch = batch;
  op.flops = 2 * batch * m * n * k;
  op.weight_bytes = batch * n * k * bytes_per_weight;
  activations(op, batch * m * k, batch * m * n);
  return op;
}

void StepBuilder::add_bias(Operator& op, double elements, double rows) const {
  op.weight_bytes += elements * precision_.other;
  op.vector_flops += elements * rows;
}

void StepBuilder::norm(OperatorKind kind, double width, bool residual) {
  Operator& op = add(kind);
  const double elements = tokens_ * width;
  op.vector_flops = elements * (kNormOps + (residual ? kResidualOps : 0));
  op.weight_bytes = width * precision_.other;
  if (residual) {
    activations(op, 2 * elements, 2 * elements);
  } else {
    activations(op, elements, elements);
  }
}

double StepBuilder::softmax_ops(double pairs) const {
  return spec_.heads * pairs * (kSoftmaxOps + (spec_.attention_softcap ? kSoftcapOps : 0));
}

void StepBuilder::embed() {
  Operator& op = add(OperatorKind::kEmbed);
  const double elements = tokens_ * spec_.hidden;
  op.weight_bytes = elements * precision_.embedding;  // the rows that are looked up, not the table
  if (spec_.scaled_embedding) op.vector_flops = elements;
  activations(op, 0, elements);
}

void StepBuilder::layers(const LayerGroup& group, int32_t index) {
  group_ = index;
  count_ = group.count;
  window_ = group.window;
  // The very first norm has no branch to add yet; counting it like the others overstates a step by
  // two reads and writes of the residual stream, below 1e-4 of any real step.
  norm(OperatorKind::kAttentionNorm, spec_.hidden, true);
  if (spec_.mla) {
    latent_attention();
  } else {
    grouped_attention();
  }
  if (spec_.sandwich_norms) norm(OperatorKind::kPostAttentionNorm, spec_.hidden, false);
  norm(OperatorKind::kMlpNorm, spec_.hidden, true);
  if (group.moe) {
    mixture();
  } else {
    dense_mlp(OperatorKind::kGateUp, OperatorKind::kDown, OperatorKind::kActivation,
              spec_.intermediate, spec_.mlp_bias);
  }
  if (spec_.sandwich_norms) norm(OperatorKind::kPostMlpNorm, spec_.hidden, false);
  group_ = kNoGroup;
  count_ = 1;
}

void StepBuilder::head() {
  norm(OperatorKind::kFinalNorm, spec_.hidden, true);
  if (shape_.samples() == 0) return;
  const double rows = static_cast<double>(shape_.samples());
  Operator& op = gemm(OperatorKind::kHead, rows, spec_.vocab, spec_.hidden, 1,
                      spec_.tied_embeddings ? precision_.embedding : precision_.head);
  if (spec_.logit_softcap) op.vector_flops += kSoftcapOps * rows * spec_.vocab;
}

}  // namespace prony::perfmodel
