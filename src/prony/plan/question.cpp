#include "prony/plan/question.hpp"

#include <fmt/format.h>

namespace prony::plan {
namespace {

constexpr int32_t kAxisMax = 4096, kSequencesMax = 1 << 20;

Result<void> check_axis(const char* flag, const std::vector<int32_t>& values, int32_t max) {
  if (values.empty()) return invalid_argument(fmt::format("{}: found no value", flag));
  for (const int32_t value : values) {
    if (value >= 1 && value <= max) continue;
    return invalid_argument(fmt::format("{}: found {}, expected 1 to {}", flag, value, max));
  }
  return {};
}

}  // namespace

Result<void> check(const Question& question) {
  const Space& space = question.space;
  for (const auto& [flag, values, max] :
       {std::tuple{"--tp", &space.tp, kAxisMax}, std::tuple{"--pp", &space.pp, kAxisMax},
        std::tuple{"--dp", &space.dp, kAxisMax},
        std::tuple{"--max-num-seqs", &space.max_sequences, kSequencesMax}}) {
    if (auto checked = check_axis(flag, *values, max); !checked) return checked;
  }
  if (space.devices.empty()) return invalid_argument("--hardware: found no device");
  if (space.weights.empty()) return invalid_argument("--weight-dtype: found no value");
  if (space.experts_spread.empty()) return invalid_argument("--ep: found no value");
  if (space.devices_max < 1 || space.devices_max > kAxisMax) {
    return invalid_argument(
        fmt::format("--max-devices: found {}, expected 1 to {}", space.devices_max, kAxisMax));
  }
  if (question.spares < 0 || question.spares > kAxisMax) {
    return invalid_argument(
        fmt::format("--spares: found {}, expected 0 to {}", question.spares, kAxisMax));
  }
  const bool closed = question.load.concurrency.has_value();
  if (closed == question.load.request_rate.has_value()) {
    return invalid_argument("expected --request-rate or --concurrency, and not both");
  }
  if (closed && !(*question.load.concurrency >= 1 && *question.load.concurrency <= 1e6)) {
    return invalid_argument("--concurrency: expected 1 to 1000000");
  }
  if (!closed && !(*question.load.request_rate > 0 && *question.load.request_rate <= 1e9)) {
    return invalid_argument("--request-rate: expected more than 0");
  }
  return {};
}

}  // namespace prony::plan
