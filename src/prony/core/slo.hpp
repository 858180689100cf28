// Slo: the one grammar of service level objectives, for bench, plan, simulate, study and compare.
//   terms:    METRIC_STATISTIC OP NUMBER UNIT     ttft_p99<=500ms
//             METRIC OP NUMBER                    goodput_fraction>=0.95, error_rate<1%
//   an Slo is terms joined by commas, all of which must hold.
// RequestSlo is the goodput form, a bound in milliseconds for each request: "ttft:200 tpot:50".
// A percentile of an Slo is over the requests that completed; pair it with error_rate or use
// goodput_fraction, whose population is every request attempted.
// Thread safety: values and pure functions. Evaluation against a record: record/slo_verdict.hpp.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::core {

enum class SloMetric {
  kTtft,
  kTpot,
  kItl,
  kIcl,
  kE2e,
  kTtftIntended,
  kE2eIntended,
  kGoodputFraction,
  kErrorRate,
  kRequestThroughput,  // requests/s
  kOutputThroughput,   // tokens/s
};
enum class SloStatistic { kNone, kMean, kMin, kMax, kP50, kP75, kP90, kP95, kP99, kP999, kP9999 };
enum class SloComparison { kLess, kLessEqual, kGreater, kGreaterEqual };

/// Name in the grammar: "ttft", "e2e", "goodput_fraction", ...; "p99", "p999", "" for kNone.
const char* slo_metric_name(SloMetric metric);
const char* slo_statistic_name(SloStatistic statistic);
const char* slo_comparison_text(SloComparison comparison);
/// True for the metrics in milliseconds, which need a statistic and a unit.
bool slo_is_latency(SloMetric metric);

struct SloTerm {
  SloMetric metric = SloMetric::kTtft;
  SloStatistic statistic = SloStatistic::kNone;
  SloComparison comparison = SloComparison::kLessEqual;
  double bound = 0;  // ms for latencies, a fraction for fractions, 1/s for throughputs

  bool holds(double value) const;  // `value` in the unit of `bound`
  bool operator==(const SloTerm&) const = default;
};

struct Slo {
  std::vector<SloTerm> terms;
  bool empty() const { return terms.empty(); }
  bool operator==(const Slo&) const = default;
};
/// `flag` names the origin in errors: `--slo: 'ttft_p42<=1ms': unknown statistic 'p42', expected
/// ...`. Spaces around pieces are allowed; an empty text is an error.
Result<Slo> parse_slo(std::string_view text, std::string_view flag = "--slo");
/// Canonical text; parse_slo(slo_text(x)) == x.
std::string slo_text(const SloTerm& term);
std::string slo_text(const Slo& slo);

/// Bounds [ms] that one request must keep to count as good; unset ones do not matter.
struct RequestSlo {
  std::optional<double> ttft_ms, tpot_ms, e2e_ms, ttft_intended_ms, e2e_intended_ms;
  bool empty() const {
    return !ttft_ms && !tpot_ms && !e2e_ms && !ttft_intended_ms && !e2e_intended_ms;
  }
  bool operator==(const RequestSlo&) const = default;
};
/// Pieces "ttft:200", in one text with spaces or commas between, or one an element. e2el is e2e;
/// "mlperf:llama2-70b-server" stands for the bounds of that benchmark (slo_presets.hpp).
Result<RequestSlo> parse_goodput(std::string_view text, std::string_view flag = "--goodput");
Result<RequestSlo> parse_goodput(std::span<const std::string> pieces,
                                 std::string_view flag = "--goodput");
/// "ttft:200 tpot:50"; empty if nothing is bounded.
std::string goodput_text(const RequestSlo& slo);

}  // namespace prony::core
