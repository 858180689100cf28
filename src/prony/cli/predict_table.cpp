#include <fmt/format.h>

#include <algorithm>

#include "prony/cli/predict_output.hpp"
#include "prony/perfmodel/error_band.hpp"

namespace prony::cli {
namespace {

using perfmodel::ServingPrediction;

constexpr double kMs = 1e3, kGiB = 1024.0 * 1024 * 1024;

std::string ms(const std::optional<double>& seconds) {
  return seconds ? fmt::format("{:.2f}", *seconds * kMs) : "-";
}

std::string share(const perfmodel::MetricError& error) {
  return error.known() ? fmt::format("+-{:.0f} %", 100 * error.mape) : "unknown";
}

}  // namespace

std::string prediction_table(const perfmodel::Deployment& d, const perfmodel::ServingLoad& load,
                             const ServingPrediction& p) {
  const perfmodel::ErrorBand band = perfmodel::error_band(d, load);
  std::string out = fmt::format("{} {} on {} x {} under {}, KV cache {}\n", d.model.id,
                                perfmodel::weight_dtype_name(d.weights), d.parallel.ranks(),
                                d.hardware.id, d.engine.name, perfmodel::kv_dtype_name(d.kv));
  out +=
      fmt::format("{} input and {} output tokens, {}\n\n", load.input_tokens, load.output_tokens,
                  load.request_rate   ? fmt::format("{:.4g} requests/s", *load.request_rate)
                  : load.static_batch ? fmt::format("a static batch of {:.0f}", *load.concurrency)
                                      : fmt::format("{:.0f} clients", *load.concurrency));
  const auto line = [&out](std::string_view name, const std::string& text) {
    out += fmt::format("{:<22} {}\n", name, text);
  };
  line("TTFT [ms]", p.ttft_s ? fmt::format("{} ({})", ms(p.ttft_s), share(band.ttft))
                             : "- (" + p.ttft_reason + ")");
  line("TPOT [ms]",
       fmt::format("{} ({}); decode steps alone {}", ms(p.tpot_s), share(band.tpot), ms(p.itl_s)));
  line("E2E [ms]", ms(p.e2e_s));
  line("99th percentile [ms]",
       p.tails.ttft_s || p.tails.itl_s
           ? fmt::format("TTFT {}, TPOT {}, ITL {}, E2E {}", ms(p.tails.ttft_s), ms(p.tails.tpot_s),
                         ms(p.tails.itl_s), ms(p.tails.e2e_s))
           : "- (" + p.tails.reason + ")");
  line("throughput", fmt::format("{:.3f} requests/s, {:.1f} output tokens/s ({}), {:.1f} a device",
                                 p.request_throughput, p.output_throughput, share(band.throughput),
                                 p.output_throughput / d.parallel.ranks()));
  line("load", fmt::format("{:.1f} % of saturation; at most {:.3f} requests/s, {:.0f} sequences",
                           100 * p.load_share, p.max_request_throughput, p.capacity));
  line("memory a device",
       fmt::format("weights {:.1f}, activations {:.1f}, overhead {:.1f}, KV cache {:.1f} GiB of "
                   "{:.1f}; {} KV blocks, {} tokens",
                   p.memory.weight_bytes / kGiB, p.memory.activation_bytes / kGiB,
                   p.memory.overhead_bytes / kGiB, p.memory.kv_bytes / kGiB,
                   p.memory.device_bytes / kGiB, p.memory.kv_blocks, p.memory.kv_tokens));
  line("error band", fmt::format("{}, {} rows", band.name, band.rows));
  for (const auto& [name, step] :
       {std::pair{"decode step", &p.decode}, std::pair{"prefill step", &p.prefill}}) {
    if (step->seconds <= 0) continue;
    out += fmt::format("\n{:<22} {:>9} {:>7}  bound\n", fmt::format("{} [ms]", name),
                       fmt::format("{:.3f}", step->seconds * kMs), "share");
    std::vector<perfmodel::CostLine> lines = step->lines;
    std::stable_sort(lines.begin(), lines.end(),
                     [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
    for (const perfmodel::CostLine& each : lines) {
      out += fmt::format("  {:<20} {:>9.3f} {:>6.1f}%  {}\n", each.name, each.seconds * kMs,
                         100 * each.seconds / step->seconds, perfmodel::bound_name(each.bound));
    }
  }
  return out;
}

std::string sweep_header() {
  return fmt::format("{:<36} {:>10} {:>10} {:>12} {:>12} {:>8}\n", "", "TTFT [ms]", "TPOT [ms]",
                     "requests/s", "tokens/s", "load");
}

std::string sweep_line(const std::string& name, const ServingPrediction& p) {
  return fmt::format("{:<36} {:>10} {:>10} {:>12.3f} {:>12.1f} {:>7.1f}%\n", name, ms(p.ttft_s),
                     ms(p.tpot_s), p.request_throughput, p.output_throughput, 100 * p.load_share);
}

}  // namespace prony::cli
