// The tables by turn and by stage under the table of `prony bench`.
#include <fmt/format.h>

#include <optional>
#include <vector>

#include "prony/cli/bench_output.hpp"

namespace prony::cli {
namespace {

// A line for each group of requests.
template <class Stats>
std::string group_lines(std::vector<Stats> groups, const char* unit) {
  if (groups.empty()) return "";
  const auto number = [](const std::optional<double>& value) {
    return value ? fmt::format("{:.4g}", *value) : std::string("-");
  };
  auto out = fmt::format("\n{:<6} {:>9} {:>9} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9}\n", unit,
                         "attempted", "completed", "prompt mean", "TTFT p50", "TTFT p90",
                         "TPOT p50", "ITL p90", "E2E p50");
  for (auto& group : groups) {
    out +=
        fmt::format("{:<6} {:>9} {:>9} {:>11} {:>9} {:>9} {:>9} {:>9} {:>9}\n", group.number(),
                    group.attempted, group.completed, number(group.input_tokens_mean),
                    number(group.ttft_ms.p50), number(group.ttft_ms.p90), number(group.tpot_ms.p50),
                    number(group.itl_ms.p90), number(group.e2e_ms.p50));
  }
  return out;
}

}  // namespace

std::string turn_and_stage_lines(const record::Metrics& m) {
  return group_lines(m.turns, "turn") + group_lines(m.stages, "stage");
}

}  // namespace prony::cli
