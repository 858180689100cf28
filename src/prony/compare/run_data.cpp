#include "prony/compare/run_data.hpp"

#include <algorithm>
#include <cmath>

#include "prony/core/check.hpp"
#include "prony/record/row_metrics.hpp"

namespace prony::compare {
namespace {

using core::SloMetric;
using record::RequestRow;

void append(SloMetric metric, const RequestRow& row, std::vector<double>& out) {
  const auto one = [&](std::optional<double> ms) {
    if (ms) out.push_back(*ms);
  };
  switch (metric) {
    case SloMetric::kTtft:
      return one(record::ttft_ms(row));
    case SloMetric::kTpot:
      return one(record::tpot_ms(row));
    case SloMetric::kE2e:
      return one(record::e2e_ms(row));
    case SloMetric::kTtftIntended:
      return one(record::ttft_intended_ms(row));
    case SloMetric::kE2eIntended:
      return one(record::e2e_intended_ms(row));
    case SloMetric::kItl:
      return record::append_itl_ms(row, out);
    case SloMetric::kIcl:
      return record::append_icl_ms(row, out);
    default:
      return;
  }
}

class Slices {
 public:
  explicit Slices(const record::Window& window) : window_(window) {
    const double seconds = core::to_seconds(window.end_ns - window.begin_ns);
    batches_.assign(stats::kBlocksMax, {0, seconds / stats::kBlocksMax});
  }
  void add(core::Nanos t, double amount) {
    if (!window_.holds(t) || window_.end_ns == window_.begin_ns) return;
    const auto length = static_cast<double>(window_.end_ns - window_.begin_ns);
    const double share = static_cast<double>(t - window_.begin_ns) / length;
    const auto slice =
        std::min(batches_.size() - 1, static_cast<size_t>(share * stats::kBlocksMax));
    batches_[slice].numerator += amount;
  }
  std::vector<stats::RatioBatch> take() && { return std::move(batches_); }

 private:
  const record::Window& window_;
  std::vector<stats::RatioBatch> batches_;
};

}  // namespace

RunData make_run_data(const RunInput& run, const std::set<SloMetric>& latencies) {
  PRONY_CHECK(run.window && !run.rows.empty(), "no rows");
  RunData data;
  // Read from a record that was checked when it was made.
  const auto slo = run.metrics.goodput_slo.empty()
                       ? Result<core::RequestSlo>(core::RequestSlo{})
                       : core::parse_goodput(run.metrics.goodput_slo, "goodput_slo");
  Slices completions(*run.window), tokens(*run.window);
  core::Nanos first_ns = run.rows.front().t_intended_ns;
  for (const auto& row : run.rows) first_ns = std::min(first_ns, row.t_intended_ns);
  data.window_s = core::to_seconds(run.window->end_ns - run.window->begin_ns);
  for (const auto metric : latencies) data.latencies[metric];
  for (const auto& row : run.rows) {
    record::visit_tokens(row, [&](core::Nanos t, double n) { tokens.add(t, n); });
    const bool ok = row.status == record::Status::kOk;
    if (ok && row.t_last_token_ns) completions.add(*row.t_last_token_ns, 1);
    if (!run.window->holds(row.t_intended_ns)) continue;
    data.has_events = data.has_events || !row.events.empty();
    data.index.push_back(row.index);
    data.input_asked.push_back(row.input_tokens_asked);
    data.output_asked.push_back(row.output_tokens_asked);
    data.since_first_ns.push_back(row.t_intended_ns - first_ns);
    data.failed.push_back(!ok);
    data.good.push_back(slo && !slo->empty() && record::is_good(row, *slo));
    for (auto& [metric, column] : data.latencies) {
      if (ok) append(metric, row, column.values);
      column.begin.push_back(column.values.size());
    }
  }
  data.completions = std::move(completions).take();
  data.tokens = std::move(tokens).take();
  return data;
}

bool same_requests(const RunData& a, const RunData& b, bool times) {
  if (a.index != b.index || a.input_asked != b.input_asked || a.output_asked != b.output_asked) {
    return false;
  }
  return !times || std::ranges::equal(a.since_first_ns, b.since_first_ns, [](auto x, auto y) {
    return std::abs(x - y) <= core::kNanosPerMicro;
  });
}

}  // namespace prony::compare
