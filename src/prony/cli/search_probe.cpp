// One probe: flags, server, load, files; and the first of them, which looks for where to begin.
#include <fmt/format.h>

#include <algorithm>

#include "prony/cli/bench_output.hpp"
#include "prony/cli/bench_setup.hpp"
#include "prony/cli/search_runner.hpp"
#include "prony/core/hash.hpp"

namespace prony::cli {
namespace {

constexpr int kTriesMax = 3;  // of a probe against a server that does not answer
// Enough users to find a server's throughput about right, few enough not to drown a small one.
constexpr int64_t kScoutUsers = 32, kScoutRequests = 4 * kScoutUsers;

}  // namespace

uint64_t SearchRunner::next_seed() {
  core::Fnv1a hash;
  hash.add(flags_.bench.seed);
  hash.add(static_cast<uint64_t>(++runs_));
  return hash.value() >> 32;
}

Result<load::BenchRun> SearchRunner::measure_probe(const std::vector<FlagValue>& again,
                                                   const std::string& name) {
  for (int tries = 1;; ++tries) {
    auto parsed = parse_run_flags(plan_.arguments, again, "");
    if (!parsed) return parsed.error();
    auto& run_flags = parsed.value().flags;
    run_flags.bench.slo = {};  // judged by its evidence, not by each probe alone
    if (auto filled = fill_defaults(run_flags); !filled) return filled.error();
    const auto endpoint = target_.open(run_flags);
    if (!endpoint) {
      const bool gone = endpoint.error().code == ErrorCode::kEnvironment;
      if (gone && tries < kTriesMax && !interrupt_.load()) continue;
      return endpoint.error();
    }
    if (flags_.out) {
      auto& folders = run_flags.bench.row_folders;
      folders.insert(folders.begin(), *flags_.out);
    }
    auto run = measure(run_flags, endpoint.value(), interrupt_, note_);
    if (!run) return run;
    const auto& record = run.value().record;
    if (search_.environment.commit.empty()) {
      search_.environment = record.environment;
      search_.model = record.system.model;
      search_.system_kind = record::system_kind_name(record.system.kind);
    }
    if (flags_.out) {
      const auto folder = fmt::format("{}/probes/{}", *flags_.out, name);
      const auto kept = write_run_files(flags_, folder, run.value());
      if (!kept) return kept.error();
    }
    return run;
  }
}

Result<double> SearchRunner::find_start() {
  if (plan_.start_given || !plan_.rate) return plan_.options.start;
  note_(fmt::format("scouting: {} requests of {} users", kScoutRequests, kScoutUsers));
  const auto users = std::min(kScoutUsers, flags_.bench.max_concurrency.value_or(kScoutUsers));
  auto run = measure_probe({{"--max-concurrency", std::to_string(users)},
                            {"--num-prompts", std::to_string(kScoutRequests)},
                            {"--seed", std::to_string(next_seed())}},
                           "scout");
  if (!run) return run.error();
  const auto throughput = run.value().record.metrics.request_throughput;
  if (interrupt_.load()) return plan_.options.start;
  if (!throughput || !(*throughput > 0)) {
    return failed(
        "--find: no request of the first run completed, so that no rate is known to "
        "begin with; give --find-start");
  }
  note_(search_plan_text(plan_, flags_, *throughput));
  return *throughput / 2;
}

}  // namespace prony::cli
