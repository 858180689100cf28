#include "prony/record/turns.hpp"

#include <algorithm>

#include "prony/record/row_metrics.hpp"

namespace prony::record {
namespace {

constexpr int64_t kExactValues = 50'000;  // a latency and turn; beyond, a histogram

int32_t entry_of(const RequestRow& row) {
  return std::min(*row.turn, kTurnsMax - 1);
}

}  // namespace

TurnTable::Turn::Turn()
    : ttft_ms(kExactValues),
      tpot_ms(kExactValues),
      e2e_ms(kExactValues),
      itl_ms(kExactValues, true) {}

void TurnTable::add(const RequestRow& row) {
  if (!row.turn) return;
  auto& turn = turns_[entry_of(row)];
  ++turn.attempted;
  if (row.status != Status::kOk) return;
  ++turn.completed;
  turn.input_tokens += row.prompt_tokens.value_or(row.input_tokens_asked);
  turn.ttft_ms.add(ttft_ms(row));
  turn.tpot_ms.add(tpot_ms(row));
  turn.e2e_ms.add(e2e_ms(row));
  gaps_.clear();
  append_itl_ms(row, gaps_);
  turn.itl_ms.add(gaps_);
}

void TurnTable::close() {
  for (auto& [index, turn] : turns_) {
    for (auto* stats : {&turn.ttft_ms, &turn.tpot_ms, &turn.e2e_ms, &turn.itl_ms}) stats->close();
  }
}

void TurnTable::add_groups(const RequestRow& row) {
  if (!row.turn || row.status != Status::kOk) return;
  gaps_.clear();
  append_itl_ms(row, gaps_);
  turns_.at(entry_of(row)).itl_ms.add_group(gaps_);
}

std::vector<TurnStats> TurnTable::finish() const {
  std::vector<TurnStats> out;
  for (const auto& [index, turn] : turns_) {
    TurnStats stats;
    stats.turn = index;
    stats.attempted = turn.attempted;
    stats.completed = turn.completed;
    if (turn.completed > 0) {
      stats.input_tokens_mean =
          static_cast<double>(turn.input_tokens) / static_cast<double>(turn.completed);
    }
    stats.ttft_ms = turn.ttft_ms.finish();
    stats.tpot_ms = turn.tpot_ms.finish();
    stats.itl_ms = turn.itl_ms.finish();
    stats.e2e_ms = turn.e2e_ms.finish();
    out.push_back(stats);
  }
  return out;
}

}  // namespace prony::record
