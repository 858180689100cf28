#include "prony/cli/bench_compat.hpp"

#include <fmt/format.h>

#include "prony/core/file.hpp"
#include "prony/record/compat.hpp"

namespace prony::cli {
namespace {

constexpr record::CompatTool kTools[] = {record::CompatTool::kVllm, record::CompatTool::kAiperf,
                                         record::CompatTool::kGuidellm};

Result<std::string> write_result(const BenchFlags& flags, const load::BenchRun& run) {
  auto options = flags.vllm_result;
  options.detailed = flags.bench.save_detailed;
  options.goodput = flags.bench.goodput;
  const auto json = record::vllm_result(run.record, run.rows, options);
  const auto text = core::write_json(json);
  if (!text) return text.error();
  const std::string folder = flags.result_dir.value_or(flags.out.value_or("."));
  if (auto made = core::make_directories(folder); !made) return made.error();
  const auto path =
      folder + "/" + flags.result_filename.value_or(record::vllm_result_filename(run.record));
  if (auto done = core::write_file_atomic(path, text.value()); !done) return done.error();
  return path;
}

}  // namespace

void declare_compat(Flags& flags, BenchFlags& o) {
  flags.group("In the words of other tools")
      .choice("--compat", o.compat, {"none", "vllm", "aiperf", "guidellm", "all"},
              "their figures of this run, by their definitions")
      .toggle("--save-result", o.save_result, "vLLM's result file, with its names and units")
      .text("--result-dir", o.result_dir, "its folder; none: that of --out, or here")
      .text("--result-filename", o.result_filename, "its name; none: as vLLM names it")
      .text("--percentile-metrics", o.percentile_metrics, "what is in it: ttft, tpot, itl, e2el")
      .text("--metric-percentiles", o.metric_percentiles, "which percentiles of them: 50,99.9");
}

Result<void> resolve_compat(BenchFlags& o) {
  auto metrics = record::parse_percentile_metrics(o.percentile_metrics);
  if (!metrics) return metrics.error();
  o.vllm_result.metrics = std::move(metrics).value();
  auto percentiles = record::parse_metric_percentiles(o.metric_percentiles);
  if (!percentiles) return percentiles.error();
  o.vllm_result.percentiles = std::move(percentiles).value();
  if (o.result_filename && o.result_filename->find('/') != std::string::npos) {
    return invalid_argument(
        fmt::format("--result-filename: found '{}', expected a name without a "
                    "folder (--result-dir)",
                    *o.result_filename));
  }
  return {};
}

Result<std::string> add_compat(const BenchFlags& flags, load::BenchRun& run) {
  for (const auto tool : kTools) {
    if (flags.compat != "all" && flags.compat != record::compat_tool_name(tool)) continue;
    run.record.compat[record::compat_tool_name(tool)] =
        record::compat_to_json(record::compat_report(tool, run.rows, flags.bench.goodput));
  }
  return flags.save_result ? write_result(flags, run) : Result<std::string>(std::string());
}

std::string compat_table(const core::Json& compat) {
  std::string out;
  for (const auto& [tool, metrics] : compat.items()) {
    out += fmt::format("\nas {} defines it\n", tool);
    for (const auto& [name, metric] : metrics.items()) {
      std::string values;
      for (const auto& [key, value] : metric.items()) {
        if (key == "unit" || key == "note") continue;
        values += key == "value" ? fmt::format(" {:.5g}", value.get<double>())
                                 : fmt::format("  {} {:.5g}", key, value.get<double>());
      }
      out += fmt::format("  {:<34}{} {}\n", name, values, metric.at("unit").get<std::string>());
      const auto note = metric.at("note").get<std::string>();
      if (!note.empty()) out += fmt::format("  {:<34}  ({})\n", "", note);
    }
  }
  return out;
}

}  // namespace prony::cli
