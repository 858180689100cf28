// What stands under the table of `prony simulate`.
#include <fmt/format.h>

#include "prony/cli/simulate_record.hpp"

namespace prony::cli {

std::string simulation_lines(const record::Record& record) {
  const auto& s = record.simulation;
  std::string out = fmt::format(
      "\nsimulated    {:.3g} requests/s of wall time ({:.3f} s), {} steps, {} events\n"
      "replicas     busy {:.1f} % of the time, KV cache at most {:.1f} %, {} preemptions\n",
      s.at("simulated_requests_per_s").get<double>(), s.at("wall_s").get<double>(),
      s.at("steps").get<int64_t>(), s.at("events").get<int64_t>(),
      100 * s.at("busy_fraction").get<double>(), 100 * s.at("kv_use_max").get<double>(),
      s.at("preemptions").get<int64_t>());
  if (const auto asked = s.at("prefix_query_tokens").get<int64_t>(); asked > 0) {
    out +=
        fmt::format("prefix cache {:.1f} % of the prompt tokens found\n",
                    100.0 * s.at("prefix_hit_tokens").get<double>() / static_cast<double>(asked));
  }
  if (record.replications.is_array()) {
    for (const auto& one : record.replications) {
      const auto number = [&](const char* name, const char* which) {
        const auto& value = one.at(name).at(which);
        return value.is_null() ? std::string("-") : fmt::format("{:.4g}", value.get<double>());
      };
      out += fmt::format("seed {:<8} TTFT mean {} p99 {}, TPOT mean {}, E2E mean {} p99 {} ms\n",
                         one.at("seed").get<uint64_t>(), number("ttft_ms", "mean"),
                         number("ttft_ms", "p99"), number("tpot_ms", "mean"),
                         number("e2e_ms", "mean"), number("e2e_ms", "p99"));
    }
  }
  return out;
}

}  // namespace prony::cli
