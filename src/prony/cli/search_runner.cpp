#include "prony/cli/search_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "prony/core/file.hpp"

namespace prony::cli {
namespace {

constexpr double kCoolDownMin_s = 1;  // a server that was overloaded forgets its queue

std::string level_text(double level) {
  return fmt::format("{:.6g}", level);
}

}  // namespace

SearchRunner::SearchRunner(const SearchPlan& plan, const BenchFlags& flags, record::Search& search,
                           const std::atomic<bool>& interrupt, Note note)
    : plan_(plan),
      flags_(flags),
      search_(search),
      interrupt_(interrupt),
      note_(std::move(note)),
      target_({.spec = {}, .log_folder = {}, .interrupt = &interrupt, .note = note_}) {}

Result<void> SearchRunner::run() {
  auto start = find_start();
  if (!start) return start.error();
  auto options = plan_.options;
  options.start = start.value();
  machine_.emplace(options);
  search_.end = "interrupted";
  while (!interrupt_.load()) {
    const auto next = machine_->next();
    if (!next) {
      search_.end = load::search_end_name(machine_->answer().end);
      break;
    }
    cool_down();
    if (auto done = probe(*next); !done) {
      if (search_.probes.empty() || done.error().code == ErrorCode::kInvalidArgument) return done;
      note_(done.error().message);
      search_.end = "server_gone";
      break;
    }
    if (auto saved = save(); !saved) return saved;
  }
  conclude();
  return save();
}

Result<void> SearchRunner::probe(const load::ProbePlan& plan) {
  const auto seed = next_seed();
  const auto name = fmt::format("{:03}", search_.probes.size() + 1);
  note_(fmt::format("probe {}: {}{} with {} requests{}", name, level_text(plan.level),
                    plan_.rate ? "/s" : " at a time", plan.requests,
                    plan.part > 1 ? " more, since it is close" : ""));
  auto run =
      measure_probe({{plan_.rate ? "--request-rate" : "--max-concurrency", level_text(plan.level)},
                     {"--num-prompts", std::to_string(plan.requests)},
                     {"--seed", std::to_string(seed)}},
                    name);
  if (!run) return run.error();
  const auto& record = run.value().record;
  if (record.run.interrupted) return {};
  record::SearchProbe kept;
  kept.level = plan.level;
  kept.part = plan.part;
  kept.requests = plan.requests;
  kept.seed = seed;
  kept.validity = record.validity;
  kept.metrics = record.metrics;
  if (flags_.out) kept.record_path = fmt::format("probes/{}/record.json", name);
  kept.judged = record.validity.valid || flags_.on_invalid == "warn";
  if (!kept.judged) note_("the probe is void: " + record.validity.reasons.front());
  search_.probes.push_back(std::move(kept));
  judge(plan, run.value());
  return {};
}

Result<void> SearchRunner::save() const {
  if (!flags_.out) return {};
  const auto text = record::search_text(search_);
  if (!text) return text.error();
  return core::write_file_atomic(*flags_.out + "/search.json", text.value());
}

void SearchRunner::cool_down() const {
  if (search_.probes.empty()) return;
  const double pause_s = std::max(flags_.sweep.pause_s, kCoolDownMin_s);
  const core::Nanos end = core::monotonic_ns() + static_cast<core::Nanos>(pause_s * 1e9);
  while (!interrupt_.load() && core::monotonic_ns() < end) {
    core::MonotonicClock().sleep_until(
        std::min(end, core::monotonic_ns() + 100 * core::kNanosPerMilli));
  }
}

}  // namespace prony::cli
