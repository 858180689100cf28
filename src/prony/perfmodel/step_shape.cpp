#include "prony/perfmodel/step_shape.hpp"

#include <algorithm>

#include "prony/core/check.hpp"

namespace prony::perfmodel {

AttentionLoad attention_load(const StepRow& row, std::optional<int32_t> window) {
  const int64_t context = row.context, queries = row.new_tokens;
  AttentionLoad load;
  load.rows = 1;
  load.queries = queries;
  // The query at position p sees p + 1 positions, or `window` once p + 1 exceeds it; the first
  // `growing` queries still see all. Their counts are context + 1, context + 2, ...
  const int64_t limit = window ? *window : context + queries;
  const int64_t growing = std::clamp<int64_t>(limit - context, 0, queries);
  load.pairs = static_cast<double>(growing) * static_cast<double>(context) +
               static_cast<double>(growing) * static_cast<double>(growing + 1) / 2 +
               static_cast<double>(queries - growing) * static_cast<double>(limit);
  // Together the queries see from the first one's window to the last position.
  load.keys = std::min(context + queries, queries + limit - 1);
  return load;
}

void StepShape::add(const StepRow& row, int64_t count) {
  PRONY_CHECK(row.context >= 0 && row.new_tokens >= 1 && count >= 1, "row of no work");
  rows_.push_back({row, count});
  tokens_ += row.new_tokens * count;
  samples_ += row.samples ? count : 0;
  sequences_ += count;
}

void StepShape::clear() {
  rows_.clear();
  tokens_ = samples_ = sequences_ = 0;
}

AttentionLoad StepShape::load(RowKind kind, std::optional<int32_t> window) const {
  AttentionLoad sum;
  for (const Rows& rows : rows_) {
    if ((rows.row.new_tokens == 1) != (kind == RowKind::kDecode)) continue;
    const AttentionLoad one = attention_load(rows.row, window);
    sum.rows += rows.count;
    sum.queries += one.queries * rows.count;
    sum.keys += one.keys * rows.count;
    sum.pairs += one.pairs * static_cast<double>(rows.count);
  }
  return sum;
}

}  // namespace prony::perfmodel
