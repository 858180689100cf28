#include "prony/engine/cuda_batch.hpp"

#include "prony/core/check.hpp"

namespace prony::engine {

static_assert(sched::kBlockTokens == kernels::cuda::kPageTokens);

void CudaBatch::add(const sched::StepRow& row, std::span<const int32_t> tokens) {
  constexpr int32_t kPage = kernels::cuda::kPageTokens;
  const int32_t end = row.first_position + row.token_count;
  PRONY_CHECK(
      row.token_count >= 1 && row.first_position >= 0 && static_cast<size_t>(end) <= tokens.size(),
      "row reaches beyond the known tokens");
  const auto pages = static_cast<size_t>((end + kPage - 1) / kPage);
  PRONY_CHECK(pages <= row.blocks.size(), "row has fewer blocks than tokens");
  row_start_.push_back(static_cast<int32_t>(token_ids_.size()));
  row_tokens_.push_back(row.token_count);
  kv_tokens_.push_back(end);
  table_start_.push_back(static_cast<int32_t>(tables_.size()));
  tables_.insert(tables_.end(), row.blocks.begin(),
                 row.blocks.begin() + static_cast<int64_t>(pages));
  for (int32_t position = row.first_position; position < end; ++position) {
    token_ids_.push_back(tokens[static_cast<size_t>(position)]);
    positions_.push_back(position);
    const int32_t page = row.blocks[static_cast<size_t>(position / kPage)];
    slots_.push_back(page * kPage + position % kPage);
  }
}

void CudaBatch::build(const sched::StepPlan& plan,
                      std::span<const std::span<const int32_t>> tokens) {
  PRONY_CHECK(plan.rows.size() == tokens.size(), "tokens of every row are needed");
  for (auto* list : {&token_ids_, &positions_, &slots_, &row_start_, &row_tokens_, &kv_tokens_,
                     &table_start_, &tables_, &sample_tokens_}) {
    list->clear();
  }
  sample_of_.assign(plan.rows.size(), -1);
  decode_rows_ = 0;
  for (const sched::StepRow& row : plan.rows) decode_rows_ += row.token_count == 1 ? 1 : 0;
  const bool decode_only = static_cast<size_t>(decode_rows_) == plan.rows.size();
  for (const bool decode : {true, false}) {
    for (size_t i = 0; i < plan.rows.size(); ++i) {
      const sched::StepRow& row = plan.rows[i];
      if ((row.token_count == 1) != decode) continue;
      add(row, tokens[i]);
      if (!row.samples && !decode_only) continue;
      if (row.samples) sample_of_[i] = static_cast<int32_t>(sample_tokens_.size());
      sample_tokens_.push_back(static_cast<int32_t>(token_ids_.size()) - 1);
    }
  }
}

kernels::cuda::StepBatch CudaBatch::view() const {
  const auto size = [](const std::vector<int32_t>& list) {
    return static_cast<int32_t>(list.size());
  };
  return {.tokens = size(token_ids_),
          .rows = size(row_start_),
          .decode_rows = decode_rows_,
          .samples = size(sample_tokens_),
          .table_entries = size(tables_),
          .token_ids = token_ids_.data(),
          .positions = positions_.data(),
          .slots = slots_.data(),
          .row_start = row_start_.data(),
          .row_tokens = row_tokens_.data(),
          .kv_tokens = kv_tokens_.data(),
          .table_start = table_start_.data(),
          .tables = tables_.data(),
          .sample_tokens = sample_tokens_.data()};
}

}  // namespace prony::engine
