// Named sets of flags of `prony bench`. A flag that is given stands over the preset.
#include <fmt/format.h>

#include <algorithm>

#include "prony/cli/bench_flags.hpp"

namespace prony::cli {
namespace {

bool is_given(const Arguments& arguments, std::initializer_list<std::string_view> names) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    const auto name = std::string_view(argument).substr(0, argument.find('='));
    return std::find(names.begin(), names.end(), name) != names.end();
  });
}

// One stream at a time, greedy, of a known length: what a user alone on the server would see, with
// the prompt's part (TTFT) apart from the answer's (TPOT), and every token stamped.
Result<void> apply_single_stream(const Arguments& arguments, BenchFlags& o) {
  auto& b = o.bench;
  if (b.request_rate) {
    return invalid_argument(
        "--request-rate: not with --preset single-stream, which sends one request at a time");
  }
  if (b.max_concurrency && *b.max_concurrency != 1) {
    return invalid_argument(
        fmt::format("--max-concurrency: found {}, expected 1 with --preset "
                    "single-stream",
                    *b.max_concurrency));
  }
  b.max_concurrency = 1;
  if (!b.num_prompts && !b.duration_s) b.num_prompts = 10;
  if (!is_given(arguments, {"--num-warmups"})) b.num_warmups = 3;
  if (!is_given(arguments, {"--output-len", "--random-output-len"})) b.output_len = "128";
  if (!b.temperature) b.temperature = 0;
  b.save_detailed = true;
  return {};
}

}  // namespace

Result<void> apply_preset(const Arguments& arguments, BenchFlags& options) {
  options.bench.preset = options.preset;
  if (options.preset == "single-stream") return apply_single_stream(arguments, options);
  return {};
}

}  // namespace prony::cli
