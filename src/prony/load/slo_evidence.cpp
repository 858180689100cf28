#include "prony/load/slo_evidence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prony/core/math.hpp"
#include "prony/record/latency_collector.hpp"
#include "prony/record/row_metrics.hpp"
#include "prony/stats/binomial.hpp"

namespace prony::load {
namespace {

using core::SloComparison;
using core::SloMetric;
using core::SloStatistic;

constexpr double kFailedMax = 0.01;  // share of failed requests that breaks a mean

constexpr int64_t kBadMany = 20;  // bad trials that show by themselves how they cluster

std::optional<double> quantile_of(SloStatistic statistic) {
  switch (statistic) {
    case SloStatistic::kP50:
      return 0.5;
    case SloStatistic::kP75:
      return 0.75;
    case SloStatistic::kP90:
      return 0.9;
    case SloStatistic::kP95:
      return 0.95;
    case SloStatistic::kP99:
      return 0.99;
    case SloStatistic::kP999:
      return 0.999;
    default:
      return std::nullopt;
  }
}

bool is_upper_bound(SloComparison comparison) {
  return comparison == SloComparison::kLess || comparison == SloComparison::kLessEqual;
}

bool is_per_gap(SloMetric metric) {
  return metric == SloMetric::kItl || metric == SloMetric::kIcl;
}

// The values of `metric` that a request brought; none where it is not defined.
std::vector<double> values_of(SloMetric metric, const record::RequestRow& row) {
  std::vector<double> out;
  const auto one = [&out](std::optional<double> value) {
    if (value) out.push_back(*value);
  };
  switch (metric) {
    case SloMetric::kTtft:
      one(record::ttft_ms(row));
      break;
    case SloMetric::kTpot:
      one(record::tpot_ms(row));
      break;
    case SloMetric::kE2e:
      one(record::e2e_ms(row));
      break;
    case SloMetric::kTtftIntended:
      one(record::ttft_intended_ms(row));
      break;
    case SloMetric::kE2eIntended:
      one(record::e2e_intended_ms(row));
      break;
    case SloMetric::kItl:
      record::append_itl_ms(row, out);
      break;
    case SloMetric::kIcl:
      record::append_icl_ms(row, out);
      break;
    default:
      break;
  }
  return out;
}

// Observations over the spread that they have, were they independent; at most all of them.
double worth_of(const stats::BatchRatio& series, double n, double independent_variance) {
  const auto batches = stats::decorrelated(series.batches());
  if (batches.size() < stats::kBatchesMin) return n;
  const auto estimate = stats::ratio_estimate(batches);
  if (!estimate) return n;
  const double variance = estimate->standard_error * estimate->standard_error;
  if (variance <= independent_variance) return n;
  return std::max(1.0, n * independent_variance / variance);
}

}  // namespace

Result<SloEvidence> SloEvidence::create(const core::Slo& slo, const core::RequestSlo& goodput) {
  SloEvidence out;
  out.goodput_ = goodput;
  if (slo.empty()) return invalid_argument("--find: found no --slo, expected one to keep");
  for (const auto& term : slo.terms) {
    Term entry;
    entry.term = term;
    const auto refuse = [&term](const char* why) {
      return invalid_argument(fmt::format("--find: --slo {}: {}", core::slo_text(term), why));
    };
    if (core::slo_is_latency(term.metric)) {
      const auto q = quantile_of(term.statistic);
      entry.is_mean = term.statistic == SloStatistic::kMean;
      if (!q && !entry.is_mean) return refuse("expected a percentile or a mean");
      if (!is_upper_bound(term.comparison)) return refuse("more load does not break it");
      entry.allowed = q ? 1 - *q : term.bound;
    } else if (term.metric == SloMetric::kErrorRate) {
      if (!is_upper_bound(term.comparison)) return refuse("more load does not break it");
      if (!(term.bound > 0)) return refuse("no number of requests shows that none would fail");
      entry.allowed = term.bound;
    } else if (term.metric == SloMetric::kGoodputFraction) {
      if (is_upper_bound(term.comparison)) return refuse("more load does not break it");
      if (goodput.empty()) return refuse("found no --goodput");
      if (!(term.bound < 1)) return refuse("no number of requests shows that all would be good");
      entry.allowed = 1 - term.bound;
    } else {
      return refuse("more load does not break it");
    }
    out.terms_.push_back(std::move(entry));
  }
  return out;
}

double SloEvidence::confidence() const {
  // A verdict uses one end of the interval, so twice the error of one end may lie outside.
  return 1 - 2 * kJudgementError / static_cast<double>(terms_.size());
}

int64_t SloEvidence::requests_needed() const {
  double needed = 1000;
  for (const auto& term : terms_) {
    if (term.is_mean) {
      needed = std::max(needed, 200.0);
      continue;
    }
    needed = std::max(needed, 10 / term.allowed);
    // (1 - allowed)^n below the error of one end: the upper end with nothing bad.
    const double error = (1 - confidence()) / 2;
    needed = std::max(needed, core::math::log(error) / core::math::log(1 - term.allowed));
  }
  // 1 - 0.99 is not exactly 0.01: 1000, not 1001.
  const auto judged = static_cast<int64_t>(std::ceil(needed - 1e-6 * needed));
  auto all = judged;
  while (all - first_judged(all) < judged) ++all;
  return all;
}

int64_t SloEvidence::first_judged(int64_t scheduled) {
  return static_cast<int64_t>(static_cast<double>(scheduled) * kJudgedFromShare);
}

void SloEvidence::add(const record::RequestRow& row) {
  if (row.index < judged_from_) return;
  for (auto& term : terms_) add_to(term, row);
}

void SloEvidence::add_to(Term& term, const record::RequestRow& row) {
  const bool ok = row.status == record::Status::kOk;
  ++term.requests;
  term.failed += !ok;
  int64_t n = 1, bad = 0;
  double sum = 0;
  if (term.term.metric == SloMetric::kErrorRate) {
    bad = !ok;
  } else if (term.term.metric == SloMetric::kGoodputFraction) {
    bad = !record::is_good(row, goodput_);
  } else {
    const auto values = values_of(term.term.metric, row);
    if (ok && values.empty()) return;  // a single token has no TPOT, and no gap
    if (!ok && term.is_mean) return;
    if (ok) {
      n = static_cast<int64_t>(values.size());
      for (const double value : values) {
        bad += !term.term.holds(value);
        sum += value;
        term.spread.add(value);
      }
      term.latency.add(sum, static_cast<double>(n));
    } else {
      bad = n = 1;
    }
  }
  term.n += n;
  term.bad_n += bad;
  term.bad.add(static_cast<double>(bad), static_cast<double>(n));
}

TermEvidence SloEvidence::judge(const Term& term) const {
  TermEvidence out;
  out.term = term.term;
  out.allowed = term.allowed;
  out.n = term.n;
  out.bad = term.bad_n;
  if (term.n == 0) return out;
  const auto n = static_cast<double>(term.n);
  const auto variance = term.spread.variance();
  double worth = n;
  // Gaps of one stream hang together by nature; what their bad ones do is what counts.
  const bool few = term.bad_n < kBadMany;
  if (variance && *variance > 0 && (few || term.is_mean) && !is_per_gap(term.term.metric)) {
    worth = worth_of(term.latency, n, *variance / static_cast<double>(term.spread.n()));
  }
  if (term.is_mean) {
    out.effective_n = worth;
    const auto interval = term.latency.interval(confidence());
    if (!term.latency.estimate() || !interval) return out;
    out.estimate = *term.latency.estimate();
    out.lower = interval->lower;
    out.upper = interval->upper;
    if (static_cast<double>(term.failed) > kFailedMax * static_cast<double>(term.requests)) {
      out.verdict = Verdict::kFail;
      return out;
    }
  } else {
    out.estimate = static_cast<double>(term.bad_n) / n;
    const double independent = out.estimate * (1 - out.estimate) / n;
    if (term.bad_n > 0 && term.bad_n < term.n) {
      worth = std::min(worth, worth_of(term.bad, n, independent));
    }
    out.effective_n = worth;
    // Whole numbers, each end rounded away from the estimate.
    const auto trials = std::max<int64_t>(1, static_cast<int64_t>(worth));
    const double scaled = out.estimate * static_cast<double>(trials);
    const auto below = static_cast<int64_t>(std::floor(scaled + 1e-9));
    const auto above = std::min(trials, static_cast<int64_t>(std::ceil(scaled - 1e-9)));
    out.lower = stats::proportion_interval(below, trials, confidence()).lower;
    out.upper = stats::proportion_interval(above, trials, confidence()).upper;
  }
  if (out.upper < out.allowed) out.verdict = Verdict::kPass;
  if (out.lower > out.allowed) out.verdict = Verdict::kFail;
  return out;
}

std::vector<TermEvidence> SloEvidence::terms() const {
  std::vector<TermEvidence> out;
  for (const auto& term : terms_) out.push_back(judge(term));
  return out;
}

Verdict SloEvidence::verdict() const {
  auto all = Verdict::kPass;
  for (const auto& term : terms()) {
    if (term.verdict == Verdict::kFail) return Verdict::kFail;
    if (term.verdict == Verdict::kUndecided) all = Verdict::kUndecided;
  }
  return all;
}

}  // namespace prony::load
