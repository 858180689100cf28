// RowSource: the rows of a run, to be walked any number of times, one at a time, whether they lie
// in memory or in a file. Everything that reads rows (summarize, the files, the report) reads this,
// so that its memory does not grow with the run. Thread safety: one thread at a time.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "prony/record/request_row.hpp"

namespace prony::record {

class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual int64_t size() const = 0;
  bool empty() const { return size() == 0; }
  /// Every row once, by ascending index, so that sums have the same bits whatever order the rows
  /// ended in. The row lasts for the call.
  virtual void for_each(const std::function<void(const RequestRow&)>& visit) const = 0;
};

/// Rows in memory, which must outlive it.
class RowSpan final : public RowSource {
 public:
  explicit RowSpan(std::span<const RequestRow> rows);
  int64_t size() const override { return static_cast<int64_t>(rows_.size()); }
  void for_each(const std::function<void(const RequestRow&)>& visit) const override;

 private:
  std::span<const RequestRow> rows_;
  std::vector<const RequestRow*> order_;  // by index; empty where the rows lie so already
};

/// All of them in memory: for tests and small runs.
std::vector<RequestRow> all_rows(const RowSource& rows);

}  // namespace prony::record
