#include "prony/cli/run_flags.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "prony/core/hash.hpp"

namespace prony::cli {
namespace {

// Names that people use for a flag, and flags whose text is a number where an axis sets it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kAxisFlags = {{
    {"concurrency", "--max-concurrency"},
    {"prefix-len", "--random-prefix-len"},
    {"request-rate", "--request-rate"},
    {"input-len", "--input-len"},
    {"output-len", "--output-len"},
    {"random-input-len", "--input-len"},
    {"random-output-len", "--output-len"},
    {"max-concurrency", "--max-concurrency"},
}};
// They name or judge a run, or wait for its server, and change nothing that is measured.
constexpr std::array<std::string_view, 9> kNotMeasured = {
    "--base-url", "--label", "--metadata", "--on-invalid",    "--ready-timeout",
    "--progress", "--slo",   "--fail-if",  "--max-error-rate"};

}  // namespace

Result<RunFlags> parse_run_flags(const Arguments& arguments, const std::vector<FlagValue>& again,
                                 const std::string& server) {
  auto all = without_sweep_flags(arguments);
  for (const auto& [flag, value] : again) {
    all.push_back(flag);
    all.push_back(value);
  }
  RunFlags run;
  Flags flags("bench", "");
  declare(flags, run.flags);
  if (const auto parsed = flags.parse(all); !parsed) return parsed.error();
  if (auto resolved = resolve(all, run.flags); !resolved) return resolved.error();
  core::Fnv1a hash;
  const auto add = [&hash](std::string_view text) {
    hash.add(text);
    hash.add_byte(0);
  };
  add(server);
  for (const auto& [name, value] : flags.effective()) {
    if (is_sweep_flag(name)) continue;
    if (std::find(kNotMeasured.begin(), kNotMeasured.end(), name) != kNotMeasured.end()) continue;
    if (value.empty()) continue;  // so that a new flag without a default changes no old digest
    add(name);
    add(value);
  }
  run.hash = fmt::format("{:016x}", hash.value());
  return run;
}

Result<std::string> axis_flag(const std::string& axis) {
  for (const auto& [name, flag] : kAxisFlags) {
    if (name == axis) return std::string(flag);
  }
  const auto flag = "--" + axis;
  BenchFlags unused;
  Flags flags("bench", "");
  declare(flags, unused);
  if (flags.takes_number(flag) && !is_sweep_flag(flag)) return flag;
  return invalid_argument(fmt::format(
      "--sweep {}: found no flag {} that takes a number, expected one, or target", axis, flag));
}

std::optional<double> load_seconds(const load::BenchOptions& options) {
  const auto shape = load::load_shape(options);
  if (!shape.ok()) return std::nullopt;
  const bool open = !shape.value().closed_loop && !shape.value().at_once;
  if (!open && !options.duration_s) return std::nullopt;
  double most = options.duration_s.value_or(1e18);
  if (!open) return most;
  if (shape.value().rate_per_s && options.num_prompts) {
    return std::min(most, static_cast<double>(*options.num_prompts) / *shape.value().rate_per_s);
  }
  if (options.duration_s) return most;
  const auto schedule = load::make_schedule(options, shape.value());
  if (!schedule.ok() || schedule.value().entries.empty()) return std::nullopt;
  return static_cast<double>(schedule.value().entries.back().t_intended_ns) / 1e9;
}

}  // namespace prony::cli
