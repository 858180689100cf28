// BenchFlags: the flags of `prony bench` as they were given, their declaration, and their turning
// into the options of load, with every check that needs no endpoint. Thread safety: a value.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prony/cli/bench_workload.hpp"
#include "prony/cli/commands.hpp"
#include "prony/cli/flags.hpp"
#include "prony/cli/sweep_flags.hpp"
#include "prony/core/result.hpp"
#include "prony/load/bench_options.hpp"
#include "prony/load/endpoint.hpp"
#include "prony/record/vllm_result.hpp"

namespace prony::cli {

struct BenchFlags {
  std::optional<std::string> base_url, endpoint, tokenizer, extra_body;
  std::string endpoint_type = "auto", model, device = "cpu";
  std::vector<std::string> headers, goodput, metadata;
  bool insecure = false;
  double ready_timeout_s = 10;
  double connect_timeout_s = 10, first_token_timeout_s = 600, stall_timeout_s = 120,
         total_timeout_s = 3600;
  std::optional<std::string> slo, fail_if, until_ci;
  std::optional<int64_t> prompt_salt;
  int64_t seed = 0, vocab_size = 0;
  std::string spin_us = "auto", pin_cores, on_invalid = "fail", progress = "auto";
  int64_t max_input = 0, max_output = 0, max_total = 0;
  std::optional<std::string> out;
  bool save_hdr = false, save_csv = false, save_trace = false;  // files in `out`
  std::string preset = "none", compat = "none";
  std::string percentile_metrics = "ttft,tpot,itl", metric_percentiles = "99";
  std::optional<std::string> result_dir, result_filename;
  bool save_result = false;
  bool json = false;
  WorkloadFlags workload;
  SweepFlags sweep;

  // After resolve():
  load::BenchOptions bench;
  record::VllmResultOptions vllm_result;
  load::EndpointOptions target;
};

void declare(Flags& flags, BenchFlags& options);
/// Fills `bench` and `target`. Error: kInvalidArgument naming the flag.
Result<void> resolve(const Arguments& arguments, BenchFlags& options);
/// --preset: sets what was not given (bench_presets.cpp).
Result<void> apply_preset(const Arguments& arguments, BenchFlags& options);
/// The part of it that says what to load (bench_target.cpp).
Result<void> resolve_target(BenchFlags& options);

/// "NAME=VALUE"; a header may also be "NAME: VALUE" (`separators` "=:").
Result<std::pair<std::string, std::string>> split_pair(const char* flag, const std::string& text,
                                                       const char* separators);
/// The command as it may be shown: without the values of headers.
std::vector<std::string> without_secrets(const Arguments& arguments);

}  // namespace prony::cli
