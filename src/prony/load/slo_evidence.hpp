// SloEvidence: does a level of load keep an objective? Judged only when it is certain.
// A percentile keeps its bound exactly if the share of requests that exceed the bound is at most
// 1 - q; likewise an error rate, and a goodput fraction. So each term is a share of bad trials with
// an allowed one, and is decided when the confidence interval of that share lies on one side of it.
// Requests share a queue and are no independent trials: the interval is Clopper and Pearson's for
// as many independent trials as the spread between batches of consecutive requests says they are
// worth, of the bad ones or of the latencies themselves, whichever is fewer (ten bad requests say
// little about how they cluster; a thousand latencies say it well).
// Here, and only here, a request that failed exceeds every bound: a server that refuses what it
// cannot do in time has not kept its objective (a mean is broken where more than 1 % failed). The
// first tenth of every probe fills the server and is not judged. Source: Korn & Graubard, Survey
// Methodology 24(2), 1998 (proportions of clustered trials). Thread safety: none.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/core/slo.hpp"
#include "prony/load/rate_search.hpp"
#include "prony/record/request_row.hpp"
#include "prony/stats/batch_ratio.hpp"
#include "prony/stats/moments.hpp"

namespace prony::load {

/// Wrong at a level with this probability at most, all terms together; a dozen levels near the
/// answer are then all right with 95 %.
inline constexpr double kJudgementError = 0.004;
inline constexpr double kJudgedFromShare = 0.1;  // of each probe

/// What is known of one term.
struct TermEvidence {
  core::SloTerm term;
  double allowed = 0;                         // share that may be bad; the bound itself for a mean
  int64_t n = 0, bad = 0;                     // trials
  double effective_n = 0;                     // independent trials that they are worth
  double estimate = 0, lower = 0, upper = 1;  // of the share (of the mean)
  Verdict verdict = Verdict::kUndecided;
};

class SloEvidence {
 public:
  /// Error: kInvalidArgument for terms that more load does not break (a throughput, a minimum), or
  /// that no number of requests decides (a maximum).
  static Result<SloEvidence> create(const core::Slo& slo, const core::RequestSlo& goodput);

  /// Requests of a probe that the first judgement needs, the unjudged tenth included: ten beyond
  /// the percentile, as anywhere in Prony, and enough for an interval that excludes the bound when
  /// not one is bad.
  int64_t requests_needed() const;

  /// A probe of `scheduled` requests begins; then its rows in the order of the schedule.
  void begin_probe(int64_t scheduled) { judged_from_ = first_judged(scheduled); }
  void add(const record::RequestRow& row);

  std::vector<TermEvidence> terms() const;
  /// kFail if any term fails, kPass if all pass.
  Verdict verdict() const;

 private:
  struct Term {
    core::SloTerm term;
    double allowed = 0;
    bool is_mean = false;
    stats::BatchRatio bad, latency;  // shares of bad trials; the latencies of the same requests
    stats::Moments spread;           // of the latencies
    int64_t n = 0, bad_n = 0, requests = 0, failed = 0;
  };
  SloEvidence() = default;
  static int64_t first_judged(int64_t scheduled);
  void add_to(Term& term, const record::RequestRow& row);
  double confidence() const;
  TermEvidence judge(const Term& term) const;

  std::vector<Term> terms_;
  core::RequestSlo goodput_;
  int64_t judged_from_ = 0;
};

}  // namespace prony::load
