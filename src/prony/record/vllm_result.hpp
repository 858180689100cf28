// The result file of `vllm bench serve --save-result`, with its names and units, so that scripts
// made for it read a run of ours: milliseconds in the summaries, seconds in the per-request lists
// of
// --save-detailed. Definitions: vllm_metrics.hpp. Of its keys only `rtfx` (audio), the probes and
// the speculative-decoding counters are not there. Thread safety: pure functions.
#pragma once
#include <string>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/record/record.hpp"
#include "prony/record/row_source.hpp"
#include "prony/record/vllm_metrics.hpp"

namespace prony::record {

struct VllmResultOptions {
  std::vector<std::string> metrics = {"ttft", "tpot", "itl"};  // --percentile-metrics
  std::vector<double> percentiles = {99};                      // --metric-percentiles
  bool detailed = false;  // --save-detailed: the lists a request
  core::RequestSlo goodput;
};
/// "ttft,e2el" and "50,99.9". Error: kInvalidArgument naming the flag.
Result<std::vector<std::string>> parse_percentile_metrics(const std::string& text);
Result<std::vector<double>> parse_metric_percentiles(const std::string& text);

core::Json vllm_result(const Record& record, const RowSource& rows,
                       const VllmResultOptions& options);

/// LABEL-RATEqps[-concurrencyN]-MODEL-DATE.json, as it names the file.
std::string vllm_result_filename(const Record& record);

}  // namespace prony::record
