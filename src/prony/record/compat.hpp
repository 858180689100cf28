// What other load generators would print for the same run: their definitions, computed from our
// stamps, each with one line on how it differs from ours. For comparing with published figures, and
// for seeing how much of a difference is definition.
// Sources, read at these commits, nothing copied:
//   vllm      https://github.com/vllm-project/vllm, vllm/benchmarks/serve.py, 009e6d4a
//   aiperf    https://github.com/ai-dynamo/aiperf, src/aiperf/metrics, docs/metrics-reference.md,
//             0176f594 and 58dd5dea
//   guidellm  https://github.com/vllm-project/guidellm, src/guidellm/schemas/request_stats.py and
//             benchmark/schemas/generative/metrics.py, 06cef291
// Thread safety: pure functions.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/slo.hpp"
#include "prony/record/row_source.hpp"

namespace prony::record {

enum class CompatTool { kVllm, kAiperf, kGuidellm };
/// "vllm", "aiperf", "guidellm".
const char* compat_tool_name(CompatTool tool);

struct CompatMetric {
  std::string name, unit;                              // as the tool calls them
  std::vector<std::pair<std::string, double>> values;  // "mean" -> 12.5; "" for a single value
  std::string note;                                    // how it differs from ours; may be empty
};
struct CompatReport {
  CompatTool tool = CompatTool::kVllm;
  std::vector<CompatMetric> metrics;
};
CompatReport compat_report(CompatTool tool, const RowSource& rows, const core::RequestSlo& goodput);

/// {"NAME": {"unit", "mean", ..., "note"}} or {"unit", "value", "note"}, of the record's section
/// `compat`.
core::Json compat_to_json(const CompatReport& report);

}  // namespace prony::record
