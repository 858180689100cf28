#include "prony/certify/certify.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/certify/cases.hpp"
#include "prony/certify/timing_cases.hpp"
#include "prony/core/clock.hpp"
#include "prony/mock/faults.hpp"

namespace prony::certify {
namespace {

std::string_view summary_of(std::string_view fault) {
  const auto all = mock::all_faults();
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.name == fault; });
  return at == all.end() ? std::string_view() : at->summary;
}

load::BenchOptions fault_run(const Expect& expect) {
  auto options = quick_run(kFaultRequests, kFaultTokens);
  options.timeouts.first_token_ns = kFirstTokenTimeoutMs * core::kNanosPerMilli;
  options.timeouts.stall_ns = kStallTimeoutMs * core::kNanosPerMilli;
  if (expect.one_at_a_time) options.max_concurrency = 1;
  if (expect.gap_ms > 0) {
    options.request_rate = fmt::format("{}", 1000.0 / expect.gap_ms);
    options.burstiness = std::numeric_limits<double>::infinity();
  }
  return options;
}

Result<Verdict> run_fault(const FaultCase& fault, const Host& host) {
  const auto played = play(host,
                           {"--ttft-ms", std::to_string(kFaultTtftMs), "--itl-ms",
                            std::to_string(kFaultItlMs), "--fault", std::string(fault.fault)},
                           fault_run(fault.expect));
  if (!played) return played.error();
  return judge_fault(fault, summary_of(fault.fault), played.value().session);
}

bool wanted(const std::vector<std::string>& only, std::string_view group, std::string_view name) {
  return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& word) {
           return word == group || word == name;
         });
}

}  // namespace

std::vector<CaseName> list_cases() {
  std::vector<CaseName> names;
  for (const auto& timing : timing_cases()) {
    names.push_back({"timing", std::string(timing.name), std::string(timing.condition), ""});
  }
  for (const auto& fault : fault_cases()) {
    names.push_back({"fault", std::string(fault.fault), std::string(summary_of(fault.fault)),
                     std::string(fault.complaint)});
  }
  return names;
}

Result<Report> certify(const Host& host, const std::vector<std::string>& only) {
  const auto all = list_cases();
  for (const auto& word : only) {
    const bool known = std::any_of(all.begin(), all.end(), [&](const CaseName& name) {
      return name.name == word || name.group == word;
    });
    if (!known) {
      return invalid_argument(
          fmt::format("--only: found '{}', expected timing, fault or a name of --list", word));
    }
  }
  const auto say = [&host](std::string_view name) {
    if (host.progress) host.progress(name);
  };
  const core::Nanos begin_ns = core::monotonic_ns();
  Report report;
  for (const auto& timing : timing_cases()) {
    if (!wanted(only, "timing", timing.name)) continue;
    say(timing.name);
    auto verdicts = timing.run(timing, host);
    if (!verdicts) return verdicts.error();
    std::move(verdicts.value().begin(), verdicts.value().end(),
              std::back_inserter(report.verdicts));
  }
  for (const auto& fault : fault_cases()) {
    if (!wanted(only, "fault", fault.fault)) continue;
    say(fault.fault);
    auto verdict = run_fault(fault, host);
    if (!verdict) return verdict.error();
    report.verdicts.push_back(std::move(verdict).value());
  }
  report.wall_s = static_cast<double>(core::monotonic_ns() - begin_ns) / 1e9;
  return report;
}

}  // namespace prony::certify
