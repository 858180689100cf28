#include "prony/record/row_groups.hpp"

#include <algorithm>

#include "prony/record/row_metrics.hpp"

namespace prony::record {
namespace {

constexpr int64_t kExactValues = 50'000;  // a latency and group; beyond, a histogram

}  // namespace

RowGroups::Group::Group()
    : ttft_ms(kExactValues),
      tpot_ms(kExactValues),
      e2e_ms(kExactValues),
      itl_ms(kExactValues, true) {}

int32_t RowGroups::entry_of(const RequestRow& row) const {
  return std::clamp(*(row.*key_), 0, kGroupsMax - 1);
}

void RowGroups::add(const RequestRow& row) {
  if (!(row.*key_)) return;
  auto& group = groups_[entry_of(row)];
  if (group.attempted++ == 0) group.first_ns = group.last_ns = row.t_intended_ns;
  group.first_ns = std::min(group.first_ns, row.t_intended_ns);
  group.last_ns = std::max(group.last_ns, row.t_intended_ns);
  if (row.status != Status::kOk) return;
  ++group.completed;
  group.input_tokens += row.prompt_tokens.value_or(row.input_tokens_asked);
  group.output_tokens += tokens_of(row);
  group.ttft_ms.add(ttft_ms(row));
  group.tpot_ms.add(tpot_ms(row));
  group.e2e_ms.add(e2e_ms(row));
  gaps_.clear();
  append_itl_ms(row, gaps_);
  group.itl_ms.add(gaps_);
}

void RowGroups::close() {
  for (auto& [number, group] : groups_) {
    for (auto* stats : {&group.ttft_ms, &group.tpot_ms, &group.e2e_ms, &group.itl_ms}) {
      stats->close();
    }
  }
}

void RowGroups::add_gaps(const RequestRow& row) {
  if (!(row.*key_) || row.status != Status::kOk) return;
  gaps_.clear();
  append_itl_ms(row, gaps_);
  groups_.at(entry_of(row)).itl_ms.add_group(gaps_);
}

void RowGroups::finish_group(const Group& group, core::Nanos begin_ns, GroupStats& stats) {
  stats.begin_s = core::to_seconds(group.first_ns - begin_ns);
  stats.end_s = core::to_seconds(group.last_ns - begin_ns);
  stats.attempted = group.attempted;
  stats.completed = group.completed;
  if (group.completed > 0) {
    const auto completed = static_cast<double>(group.completed);
    stats.input_tokens_mean = static_cast<double>(group.input_tokens) / completed;
    stats.output_tokens_mean = group.output_tokens / completed;
  }
  stats.ttft_ms = group.ttft_ms.finish();
  stats.tpot_ms = group.tpot_ms.finish();
  stats.itl_ms = group.itl_ms.finish();
  stats.e2e_ms = group.e2e_ms.finish();
}

}  // namespace prony::record
