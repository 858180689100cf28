#include "prony/record/row_source.hpp"

#include <algorithm>

namespace prony::record {

RowSpan::RowSpan(std::span<const RequestRow> rows) : rows_(rows) {
  const auto before = [](const RequestRow& a, const RequestRow& b) { return a.index < b.index; };
  if (std::is_sorted(rows.begin(), rows.end(), before)) return;
  for (const auto& row : rows) order_.push_back(&row);
  std::stable_sort(order_.begin(), order_.end(),
                   [&](const auto* a, const auto* b) { return before(*a, *b); });
}

void RowSpan::for_each(const std::function<void(const RequestRow&)>& visit) const {
  if (order_.empty()) {
    for (const auto& row : rows_) visit(row);
  } else {
    for (const auto* row : order_) visit(*row);
  }
}

std::vector<RequestRow> all_rows(const RowSource& rows) {
  std::vector<RequestRow> out;
  out.reserve(static_cast<size_t>(rows.size()));
  rows.for_each([&](const RequestRow& row) { out.push_back(row); });
  return out;
}

}  // namespace prony::record
