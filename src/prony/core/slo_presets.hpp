// Named bounds of a good request: the latency constraints of MLPerf Inference's datacenter LLM
// benchmarks, for --goodput mlperf:llama2-70b-server. There 99 % of the requests must keep them:
// add --slo "goodput_fraction>=0.99".
// Source: MLCommons, inference_rules.adoc, section "Benchmarks", table of constraints, commit
// ac93e89 of 2026-07-23, https://github.com/mlcommons/inference_policies. "Conversational" there is
// "server" here, as the scenario is called. Their TPOT divides by N - 1 as ours does where the
// first event holds one token.
// Thread safety: pure functions.
#pragma once
#include <span>
#include <string_view>

namespace prony::core {

struct SloPreset {
  const char* name;  // without "mlperf:"
  double ttft_ms, tpot_ms;
};
std::span<const SloPreset> mlperf_slo_presets();
/// nullptr if there is none of that name.
const SloPreset* find_mlperf_slo(std::string_view name);

}  // namespace prony::core
