#include "prony/cli/bench_workload.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "prony/catalog/catalog.hpp"
#include "prony/cli/bench_flags.hpp"
#include "prony/load/bench_schedule.hpp"
#include "prony/token/tokenizer.hpp"

namespace prony::cli {

void declare_arrivals(Flags& flags, BenchFlags& o) {
  auto& w = o.bench.workload;
  flags.text("--stages", w.stages, "rates one after the other: 4@60s,8-16@60s")
      .text("--on-off", w.on_off, "the rate for ON, nothing for OFF, and again: 5s,15s")
      .text("--diurnal", w.diurnal, "the rate swings about --request-rate: PERIOD,SWING: 24h,0.6")
      .text("--ramp-up-strategy", w.ramp_strategy,
            "linear or exponential, over --duration or, as in vLLM, over the requests")
      .number("--ramp-up-start-rps", w.ramp_start_rps, "rate at its beginning")
      .number("--ramp-up-end-rps", w.ramp_end_rps, "rate at its end");
}

void declare_workload(Flags& flags, BenchFlags& o) {
  auto& b = o.bench;
  auto& w = b.workload;
  auto& f = o.workload;
  flags.group("Workload")
      .choice("--dataset,--dataset-name", b.dataset,
              {"random", "azure", "mooncake", "burstgpt", "sharegpt", "servegen", "jsonl", "csv",
               "schedule", "prefix_repetition"},
              "where lengths and times come from")
      .text("--dataset-path", b.dataset_path,
            "its file; azure, mooncake, servegen: none is the sample that ships")
      .text("--column", w.columns,
            "of csv, jsonl: input=A,output=B,time=C[:s|ms|us|ns|date],session=D")
      .text("--input-len,--random-input-len", b.input_len,
            "512, uniform:L,H, normal:M,S, lognormal:M,S, zipf:S,MOST or 0.7*A+0.3*B")
      .text("--output-len,--random-output-len", b.output_len, "likewise")
      .number("--random-range-ratio", b.range_ratio, "lengths within (1 -+ this), as in vLLM")
      .choice("--lengths", w.lengths, {"trace", "resample", "kde", "kde-pairs"},
              "of a trace: in its order, rows drawn, a density of each column, or of the pairs")
      .text("--kde-bandwidth", w.bandwidth, "tokens (or of the logarithm), or silverman")
      .toggle("--kde-log", w.kde_log, "density of the logarithms: for long tails")
      .toggle("--shuffle-lengths", b.shuffle_lengths, "the same as --lengths resample")
      .number("--trace-start", b.trace_start_s, "first instant of the trace to use [s]")
      .number("--trace-length", b.trace_length_s, "how much of it [s]; 0: all (servegen: 600)")
      .number("--time-scale", b.time_scale,
              "trace times are multiplied by it: 0.5 doubles the rate")
      .number("--input-scale", b.scale.input_factor, "factor on every prompt length")
      .number("--output-scale", b.scale.output_factor, "factor on every answer length")
      .integer("--max-input-len", o.max_input, "longer prompts are cut to it; 0: none")
      .integer("--max-output-len", o.max_output, "longer answers are cut to it; 0: none")
      .integer("--max-total-len", o.max_total,
               "prompt and answer together, and where a conversation ends; 0: none")
      .integer("--random-prefix-len", b.prefix_len, "tokens shared by the prompts of a group")
      .integer("--prefix-groups", b.prefix_groups, "groups with a shared prefix each")
      .number("--prefix-zipf", w.prefix_zipf, "popularity of the groups: k^-this; 0: all alike")
      .integer("--prefix-repetition-prefix-len", f.repetition_prefix_len,
               "of --dataset prefix_repetition, as in vLLM")
      .integer("--prefix-repetition-suffix-len", f.repetition_suffix_len, "likewise")
      .integer("--prefix-repetition-num-prefixes", f.repetition_prefixes, "likewise")
      .integer("--prefix-repetition-output-len", f.repetition_output_len, "likewise")
      .text("--turns", w.turns, "conversations of so many turns: a number or a law")
      .text("--think-time", w.think_time,
            "before each later turn [s]: 2, uniform:L,H, exponential:M or lognormal:M,S")
      .integer("--num-sessions", w.num_sessions, "conversations; the rate is that of their starts")
      .choice("--history", w.history, {"received", "synthetic"},
              "answers that later turns quote: the server's, or texts of the asked length")
      .choice("--prompt-format", b.prompt_format, {"text", "ids"}, "what a prompt is sent as")
      .integer("--prompt-salt", o.prompt_salt, "fixed texts; none: new ones in every run")
      .text("--save-schedule", f.save_schedule, "file for the schedule, for --dataset schedule")
      .toggle("--dry-run", f.dry_run, "report the schedule, or a sweep's cells, and send nothing");
}

Result<void> resolve_workload(BenchFlags& o) {
  auto& bench = o.bench;
  if (bench.dataset == "prefix_repetition") {
    const auto& f = o.workload;
    bench.dataset = "random";
    bench.prefix_len = f.repetition_prefix_len;
    bench.prefix_groups = f.repetition_prefixes;
    bench.input_len = fmt::format("{}", f.repetition_suffix_len);
    bench.output_len = fmt::format("{}", f.repetition_output_len);
  }
  if (bench.workload.lengths != "trace" && !load::is_trace(bench)) {
    return invalid_argument(
        fmt::format("--lengths {}: expected a dataset that is a trace, found {}",
                    bench.workload.lengths, bench.dataset));
  }
  if (bench.dataset == "sharegpt" && o.tokenizer) {
    auto tokenizer = token::open_tokenizer(*o.tokenizer);
    if (!tokenizer) return tokenizer.error();
    bench.workload.count_tokens = [shared = std::move(tokenizer).value()](std::string_view text) {
      return shared->count(text);
    };
  }
  return {};
}

Result<void> fill_dataset_path(BenchFlags& o) {
  if (!o.bench.dataset_path.empty()) return {};
  constexpr std::array<std::pair<const char*, const char*>, 3> kSamples{
      {{"azure", "azure-llm-2023-conv-sample.csv"},
       {"mooncake", "mooncake-conversation-sample.jsonl"},
       {"servegen", "servegen-deepseek-r1-sample_arrivals.csv"}}};
  for (const auto& [dataset, file] : kSamples) {
    if (o.bench.dataset != dataset) continue;
    auto folder = catalog::data_folder();
    if (!folder) return folder.error();
    o.bench.dataset_path = fmt::format("{}/traces/{}", folder.value(), file);
  }
  return {};
}

}  // namespace prony::cli
