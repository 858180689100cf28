// What --find asks for and what it will cost.
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "prony/cli/search_runner.hpp"

namespace prony::cli {
namespace {

constexpr double kStartConcurrency = 8;
// Doublings to the bracket and bisections in it, where each is clear at once.
constexpr int kProbesTypical = 8;

Result<double> parse_precision(const std::string& text) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view rest(end, static_cast<size_t>(text.data() + text.size() - end));
  if (rest == "%") value /= 100;
  if (code == std::errc() && (rest.empty() || rest == "%") && value >= 0.001 && value <= 1) {
    return value;
  }
  return invalid_argument(fmt::format("--find-precision: found '{}', expected 0.1% to 100%", text));
}

Result<void> check_level(const char* flag, const std::optional<double>& level, bool whole) {
  if (!level) return {};
  const bool fits = *level > 0 && *level <= 1e7 && (!whole || std::floor(*level) == *level);
  if (fits) return {};
  return invalid_argument(fmt::format("{}: found {:g}, expected {}, more than 0", flag, *level,
                                      whole ? "a whole number" : "requests/s"));
}

Result<void> check_conflicts(const BenchFlags& flags, bool rate) {
  const auto& bench = flags.bench;
  const auto refuse = [&](const char* flag) {
    return invalid_argument(fmt::format("{}: not with --find, which decides it", flag));
  };
  if (flags.sweep.is_sweep()) return invalid_argument("--sweep: not with --find");
  if (flags.sweep.resume) return invalid_argument("--resume: not with --find");
  // Many short runs, kept together: their figures in other tools' words would be of none of them.
  if (flags.save_result) return invalid_argument("--save-result: not with --find");
  if (flags.compat != "none") return invalid_argument("--compat: not with --find");
  if (bench.request_rate) return refuse("--request-rate");
  if (bench.duration_s) return refuse("--duration");
  if (bench.until_ci) return refuse("--until-ci");
  if (!rate && bench.max_concurrency) return refuse("--max-concurrency");
  if (bench.dataset == "schedule") {
    return invalid_argument("--dataset schedule: not with --find: it has its own times");
  }
  return {};
}

std::string time_text(double seconds) {
  if (seconds < 120) return fmt::format("{:.0f} s", seconds);
  if (seconds < 7200) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

}  // namespace

Result<SearchPlan> plan_search(const Arguments& arguments, const BenchFlags& flags) {
  SearchPlan plan;
  plan.arguments = arguments;
  plan.rate = flags.sweep.find == "max-rate";
  if (auto checked = check_conflicts(flags, plan.rate); !checked) return checked.error();
  const auto evidence = load::SloEvidence::create(flags.bench.slo, flags.bench.goodput);
  if (!evidence) return evidence.error();
  auto precision = parse_precision(flags.sweep.find_precision);
  if (!precision) return precision.error();
  const auto& sweep = flags.sweep;
  for (const auto& checked : {check_level("--find-start", sweep.find_start, !plan.rate),
                              check_level("--find-max", sweep.find_max, !plan.rate)}) {
    if (!checked) return checked.error();
  }
  if (sweep.find_probes < 1 || sweep.find_probes > 1000) {
    return invalid_argument(
        fmt::format("--find-probes: found {}, expected 1 to 1000", sweep.find_probes));
  }
  const auto needed = evidence.value().requests_needed();
  if (flags.bench.num_prompts && *flags.bench.num_prompts < needed) {
    return invalid_argument(
        fmt::format("--num-prompts: found {}, expected {} or more, which --slo needs a probe",
                    *flags.bench.num_prompts, needed));
  }
  auto& options = plan.options;
  options.integral = !plan.rate;
  options.precision = precision.value();
  options.probe_requests = flags.bench.num_prompts.value_or(needed);
  options.probes_max = sweep.find_probes;
  options.level_min = plan.rate ? 1e-3 : 1;
  options.level_max = sweep.find_max.value_or(plan.rate ? 1e6 : 100'000);
  plan.start_given = sweep.find_start.has_value();
  options.start = sweep.find_start.value_or(plan.rate ? 1 : kStartConcurrency);
  if (options.start > options.level_max) options.start = options.level_max;
  return plan;
}

record::Search make_search_document(const SearchPlan& plan, const BenchFlags& flags) {
  record::Search out;
  out.objective = flags.sweep.find;
  out.unit = plan.rate ? "requests/s" : "requests in flight";
  out.slo = core::slo_text(flags.bench.slo);
  out.precision = plan.options.precision;
  out.probe_requests = plan.options.probe_requests;
  out.seed = flags.bench.seed;
  out.command = flags.bench.command;
  out.label = flags.bench.label;
  return out;
}

std::string search_plan_text(const SearchPlan& plan, const BenchFlags& flags,
                             std::optional<double> level) {
  auto out = fmt::format("{} needs {} requests a probe", core::slo_text(flags.bench.slo),
                         plan.options.probe_requests);
  if (!plan.rate || !level) return out + "; how long that takes depends on the server";
  const double one_s = static_cast<double>(plan.options.probe_requests) / *level;
  return out + fmt::format(
                   ", {} at {:.3g}/s: about {} for {} probes, and longer where the answer is close",
                   time_text(one_s), *level, time_text(kProbesTypical * one_s), kProbesTypical);
}

}  // namespace prony::cli
