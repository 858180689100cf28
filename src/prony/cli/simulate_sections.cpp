// The sections of a simulated record that no measured one has.
#include <algorithm>

#include "prony/cli/simulate_record.hpp"

namespace prony::cli {

using core::Json;

Json replication_json(const record::Metrics& m) {
  Json json;
  json["completed"] = m.completed.value_or(0);
  const auto number = [](const std::optional<double>& v) { return v ? Json(*v) : Json(nullptr); };
  json["output_throughput"] = number(m.output_throughput);
  for (const auto& [name, stats] : {std::pair{"ttft_ms", &m.ttft_ms},
                                    {"tpot_ms", &m.tpot_ms},
                                    {"itl_ms", &m.itl_ms},
                                    {"e2e_ms", &m.e2e_ms}}) {
    json[name] = {
        {"mean", number(stats->mean)}, {"p50", number(stats->p50)}, {"p99", number(stats->p99)}};
  }
  return json;
}

Json simulation_json(const std::vector<sim::Replication>& replications, double wall_s) {
  sim::ClusterTotals sum;
  double busy_s = 0, time_s = 0, kv = 0;
  for (const auto& one : replications) {
    const auto& t = one.totals;
    sum.arrived += t.arrived;
    sum.steps += t.steps;
    sum.scheduled_tokens += t.scheduled_tokens;
    sum.preemptions += t.preemptions;
    sum.prefix_hit_tokens += t.prefix_hit_tokens;
    sum.prefix_query_tokens += t.prefix_query_tokens;
    sum.events += t.events;
    for (const auto& replica : t.replicas) {
      busy_s += core::to_seconds(replica.busy_ns);
      time_s += core::to_seconds(t.end_ns);
      kv = std::max(kv, replica.kv_use_max);
    }
  }
  return {{"wall_s", wall_s},
          {"simulated_requests_per_s", wall_s > 0 ? static_cast<double>(sum.arrived) / wall_s : 0},
          {"events", sum.events},
          {"replications", replications.size()},
          {"steps", sum.steps},
          {"scheduled_tokens", sum.scheduled_tokens},
          {"preemptions", sum.preemptions},
          {"prefix_query_tokens", sum.prefix_query_tokens},
          {"prefix_hit_tokens", sum.prefix_hit_tokens},
          {"busy_fraction", time_s > 0 ? busy_s / time_s : 0},
          {"kv_use_max", kv}};
}

}  // namespace prony::cli
