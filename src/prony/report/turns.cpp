#include "prony/report/turns.hpp"

#include <algorithm>

#include "prony/record/row_metrics.hpp"

namespace prony::report {
namespace {

/// Of each turn and latency; 64 turns of three are then 40 MB at most.
constexpr int64_t kExactMax = 25'000;

}  // namespace

Turns::Sums::Sums() : ttft(kExactMax), tpot(kExactMax), e2e(kExactMax) {}

void Turns::add(const record::RequestRow& row) {
  if (!row.turn) return;
  auto& sums = sums_[std::clamp(*row.turn, 0, kTurnsMax - 1)];
  ++sums.attempted;
  if (row.status != record::Status::kOk) return;
  ++sums.completed;
  sums.input += row.prompt_tokens.value_or(row.input_tokens_asked);
  sums.output += record::tokens_of(row);
  sums.ttft.add(record::ttft_ms(row));
  sums.tpot.add(record::tpot_ms(row));
  sums.e2e.add(record::e2e_ms(row));
}

std::map<int32_t, Turns::Line> Turns::finish() {
  std::map<int32_t, Line> out;
  for (auto& [turn, sums] : sums_) {
    auto& line = out[turn];
    line.attempted = sums.attempted;
    line.failed = sums.attempted - sums.completed;
    if (sums.completed > 0) {
      line.input_tokens_mean = sums.input / static_cast<double>(sums.completed);
      line.output_tokens_mean = sums.output / static_cast<double>(sums.completed);
    }
    for (const auto& [collector, stats] : {std::pair{&sums.ttft, &line.ttft_ms},
                                           {&sums.tpot, &line.tpot_ms},
                                           {&sums.e2e, &line.e2e_ms}}) {
      collector->close();
      *stats = collector->finish();
    }
  }
  return out;
}

}  // namespace prony::report
