// Flags of `prony bench` into options of load.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <tuple>

#include "prony/cli/bench_compat.hpp"
#include "prony/cli/bench_flags.hpp"
#include "prony/cli/spin.hpp"
#include "prony/core/system.hpp"
#include "prony/load/run_telemetry.hpp"

namespace prony::cli {
namespace {

Result<core::Nanos> to_nanos(const char* flag, double seconds) {
  if (seconds > 0 && seconds <= 1e7) return static_cast<core::Nanos>(std::llround(seconds * 1e9));
  return invalid_argument(
      fmt::format("{}: found {:g}, expected seconds, more than 0", flag, seconds));
}

Result<void> check_range(const char* flag, int64_t value, int64_t low, int64_t high) {
  if (value >= low && value <= high) return {};
  return invalid_argument(fmt::format("{}: found {}, expected {} to {}", flag, value, low, high));
}

Result<std::vector<int>> parse_cores(std::string_view text) {
  std::vector<int> cores;
  const auto allowed = core::allowed_cores();
  while (!text.empty()) {
    const auto piece = text.substr(0, text.find(','));
    int core = -1;
    const auto [end, code] = std::from_chars(piece.data(), piece.data() + piece.size(), core);
    if (code != std::errc() || end != piece.data() + piece.size() ||
        std::find(allowed.begin(), allowed.end(), core) == allowed.end()) {
      return invalid_argument(fmt::format("--pin-cores: found '{}', expected some of {}", piece,
                                          fmt::join(allowed, ",")));
    }
    cores.push_back(core);
    text.remove_prefix(std::min(text.size(), piece.size() + 1));
  }
  return cores;
}

Result<void> resolve_rules(BenchFlags& o) {
  auto& bench = o.bench;
  if (!o.goodput.empty()) {
    auto goodput = core::parse_goodput(std::span<const std::string>(o.goodput));
    if (!goodput) return goodput.error();
    bench.goodput = goodput.value();
  }
  for (const auto& [flag, text, into] : {std::tuple{"--slo", &o.slo, &bench.slo},
                                         std::tuple{"--fail-if", &o.fail_if, &bench.fail_if}}) {
    if (!*text) continue;
    auto parsed = core::parse_slo(**text, flag);
    if (!parsed) return parsed.error();
    *into = std::move(parsed).value();
  }
  if (o.until_ci) {
    auto goal = load::parse_until_ci(*o.until_ci);
    if (!goal) return goal.error();
    bench.until_ci = goal.value();
  }
  if (bench.max_error_rate && !(*bench.max_error_rate >= 0 && *bench.max_error_rate <= 1)) {
    return invalid_argument(
        fmt::format("--max-error-rate: found {:g}, expected 0 to 1", *bench.max_error_rate));
  }
  for (const auto& text : o.metadata) {
    auto pair = split_pair("--metadata", text, "=");
    if (!pair) return pair.error();
    bench.metadata[pair.value().first] = pair.value().second;
  }
  return {};
}

}  // namespace

Result<void> resolve(const Arguments& arguments, BenchFlags& o) {
  auto& bench = o.bench;
  for (const auto& done : {apply_preset(arguments, o), resolve_target(o), resolve_rules(o),
                           resolve_workload(o), resolve_compat(o), load::check_telemetry(bench)}) {
    if (!done) return done.error();
  }
  for (const auto& [flag, seconds, into] :
       {std::tuple{"--connect-timeout", o.connect_timeout_s, &bench.timeouts.connect_ns},
        {"--first-token-timeout", o.first_token_timeout_s, &bench.timeouts.first_token_ns},
        {"--stall-timeout", o.stall_timeout_s, &bench.timeouts.stall_ns},
        {"--total-timeout", o.total_timeout_s, &bench.timeouts.total_ns}}) {
    auto nanos = to_nanos(flag, seconds);
    if (!nanos) return nanos.error();
    *into = nanos.value();
  }
  constexpr int64_t kMax = 100'000'000;
  for (const auto& done : {check_range("--seed", o.seed, 0, INT64_MAX),
                           check_range("--threads", bench.threads, 1, 256),
                           check_range("--num-warmups", bench.num_warmups, 0, 1'000'000),
                           check_range("--preconnect", bench.preconnect.value_or(0), 0, 1'000'000),
                           check_range("--random-prefix-len", bench.prefix_len, 0, kMax),
                           check_range("--max-input-len", o.max_input, 0, kMax),
                           check_range("--max-output-len", o.max_output, 0, kMax),
                           check_range("--max-total-len", o.max_total, 0, kMax),
                           check_range("--vocab-size", o.vocab_size, 0, kMax)}) {
    if (!done) return done.error();
  }
  if (o.max_input > 0) bench.scale.input_max = static_cast<int32_t>(o.max_input);
  if (o.max_output > 0) bench.scale.output_max = static_cast<int32_t>(o.max_output);
  bench.scale.total_max = static_cast<int32_t>(o.max_total);
  bench.seed = static_cast<uint64_t>(o.seed);
  if (o.prompt_salt) bench.prompt_salt = static_cast<uint64_t>(*o.prompt_salt);
  if (o.extra_body) {
    auto extra = core::parse_json(*o.extra_body, "--extra-body");
    if (!extra) return extra.error();
    if (auto ok = load::check_extra_body(extra.value(), "--extra-body"); !ok) return ok.error();
    bench.extra_body = std::move(extra).value();
  }
  auto spin = parse_spin_us(o.spin_us);
  if (!spin) return spin.error();
  bench.spin_us = spin.value();
  auto cores = parse_cores(o.pin_cores);
  if (!cores) return cores.error();
  bench.cores = std::move(cores).value();
  if (const auto folder = core::environment_variable("TMPDIR"); folder && !folder->empty()) {
    bench.row_folders.insert(bench.row_folders.begin(), *folder);
  }
  for (const auto& [flag, given] : {std::pair{"--save-csv", o.save_csv},
                                    {"--save-hdr", o.save_hdr},
                                    {"--save-trace", o.save_trace}}) {
    if (given && !o.out) {
      return invalid_argument(fmt::format("{}: found no --out, expected the folder for it", flag));
    }
  }
  if (o.out) bench.row_folders.insert(bench.row_folders.begin(), *o.out);
  bench.command = {"bench"};
  for (auto& argument : without_secrets(arguments)) bench.command.push_back(std::move(argument));
  auto shape = load::load_shape(bench);  // rates and caps, before anything is started
  return shape.ok() ? Result<void>() : Result<void>(shape.error());
}

}  // namespace prony::cli
