#include "prony/load/run_warnings.hpp"

#include <fmt/format.h>

#include <cmath>

namespace prony::load {
namespace {

constexpr double kLittleMax = 0.05;  // beyond it the edges of the window weigh too much
constexpr int64_t kFailuresInARow = 20;

}  // namespace

void warn_about_run(const record::Metrics& metrics, record::Validity& validity) {
  const auto warn = [&](std::string text) { validity.warnings.push_back(std::move(text)); };
  if (metrics.overloaded.value_or(false)) {
    warn(
        fmt::format("overloaded: requests in the system grew by {:.3g}/s until the end; rates and "
                    "latencies depend on how long the run was",
                    metrics.queue_growth.value_or(0)));
  } else if (!metrics.steady.value_or(true)) {
    warn(fmt::format("not steady: {} changed by {:+.0f} % over the run",
                     metrics.overloaded ? "the wait for the first token" : "E2E",
                     100 * metrics.steady_change.value_or(0)));
  }
  if (const auto& warm_up = metrics.warm_up;
      warm_up && warm_up->requests > 0 && !warm_up->trimmed) {
    warn(
        fmt::format("the first {} requests ({:.3g} s) are a warm-up, {:+.0f} % off the rest in {}; "
                    "--steady-state auto leaves them out",
                    warm_up->requests, warm_up->seconds, 100 * warm_up->change, warm_up->judged));
  }
  if (const auto& little = metrics.little; little && std::abs(little->discrepancy) > kLittleMax) {
    warn(
        fmt::format("Little's law is off by {:+.0f} %: {:.3g} in flight, {:.3g}/s x {:.3g} s = "
                    "{:.3g}; the window is short against the requests, or the load changed",
                    100 * little->discrepancy, little->in_flight, little->rate, little->residence_s,
                    little->rate * little->residence_s));
  }
  if (const auto& run = metrics.longest_failure_run; run && run->requests >= kFailuresInARow) {
    std::string statuses;
    for (const auto& [status, count] : run->errors) {
      statuses += fmt::format("{}{} {}", statuses.empty() ? "" : ", ", count, status);
    }
    warn(fmt::format("{} requests in a row failed, meant for {:.3g} to {:.3g} s: {}", run->requests,
                     run->begin_s, run->end_s, statuses));
  }
}

void warn_about_early_stops(const record::TokenTally& answers, record::Validity& validity) {
  if (answers.fewer == 0) return;
  validity.warnings.push_back(
      fmt::format("{} of {} answers stopped early ({} of {} tokens in all); --ignore-eos asks for "
                  "the whole length",
                  answers.fewer, answers.requests, answers.got, answers.asked));
}

}  // namespace prony::load
