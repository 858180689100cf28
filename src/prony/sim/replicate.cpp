#include "prony/sim/replicate.hpp"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

namespace prony::sim {
namespace {

Result<Replication> play(
    uint64_t seed, ClusterOptions options, const StepTimeMaker& make_time,
    const std::function<Result<workload::Schedule>(uint64_t seed)>& make_schedule) {
  auto schedule = make_schedule(seed);
  if (!schedule) return schedule.error();
  Replication out;
  out.seed = options.seed = seed;
  out.rows.reserve(schedule->entries.size());
  auto totals = simulate(*schedule, options, make_time,
                         [&](record::RequestRow&& row) { out.rows.push_back(std::move(row)); });
  if (!totals) return totals.error();
  out.totals = std::move(totals).value();
  std::sort(out.rows.begin(), out.rows.end(),
            [](const auto& a, const auto& b) { return a.index < b.index; });
  return out;
}

void shift(record::RequestRow& row, core::Nanos by_ns, int64_t by_index) {
  row.index += by_index;
  row.t_intended_ns += by_ns;
  for (auto* stamp : {&row.t_send_ns, &row.t_sent_ns, &row.t_headers_ns, &row.t_first_event_ns,
                      &row.t_first_token_ns, &row.t_first_output_ns, &row.t_last_token_ns,
                      &row.t_done_ns, &row.t_close_ns}) {
    if (*stamp) **stamp += by_ns;
  }
  for (auto& event : row.events) {
    event.t_kernel_ns += by_ns;
    event.t_user_ns += by_ns;
  }
}

}  // namespace

Result<std::vector<Replication>> replicate(
    int count, int threads, const ClusterOptions& options, const StepTimeMaker& make_time,
    const std::function<Result<workload::Schedule>(uint64_t seed)>& make_schedule) {
  std::vector<std::optional<Result<Replication>>> results(static_cast<size_t>(count));
  std::atomic<int> next{0};
  const auto work = [&] {
    for (int i = next++; i < count; i = next++) {
      results[static_cast<size_t>(i)].emplace(
          play(options.seed + static_cast<uint64_t>(i), options, make_time, make_schedule));
    }
  };
  std::vector<std::thread> helpers;
  for (int i = 1; i < std::min(threads, count); ++i) helpers.emplace_back(work);
  work();
  for (auto& helper : helpers) helper.join();
  std::vector<Replication> out;
  for (auto& result : results) {
    if (!result->ok()) return result->error();
    out.push_back(std::move(*result).value());
  }
  return out;
}

std::vector<record::RequestRow> pooled(const std::vector<Replication>& replications) {
  std::vector<record::RequestRow> out;
  core::Nanos begin_ns = 0;
  for (const Replication& replication : replications) {
    core::Nanos last_ns = 0;
    const auto first = static_cast<int64_t>(out.size());
    for (const auto& row : replication.rows) {
      last_ns = std::max(last_ns, row.t_intended_ns);
      out.push_back(row);
      shift(out.back(), begin_ns, first);
    }
    begin_ns += last_ns;
  }
  return out;
}

}  // namespace prony::sim
