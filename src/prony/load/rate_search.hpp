// RateSearch: finds the highest level (a request rate, or a concurrency) that keeps an objective,
// asking for one probe after the other. Doubles or halves until the answer is bracketed, then
// bisects in log level. A probe is told only how all evidence at its level was judged; where that
// is not certain yet, more of it is asked for, a bounded number of times, and where it stays
// uncertain the bracket closes in on such levels from both sides. So the interval of the answer is
// made of levels that were decided, never of ones that were guessed.
// A pure state machine: no clock, no randomness. Assumes that more load never helps.
// Thread safety: none.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

namespace prony::load {

enum class Verdict { kPass, kFail, kUndecided };
const char* verdict_name(Verdict verdict);

struct SearchOptions {
  double start = 1;  // first level
  double level_min = 1e-3, level_max = std::numeric_limits<double>::infinity();
  bool integral = false;       // levels are whole numbers (concurrency)
  double precision = 0.05;     // enough when highest failed / lowest passed - 1 is at most this
  int64_t probe_requests = 0;  // of the first probe at a level, > 0
  int64_t extensions_max = 2;  // each makes the evidence at a level four times as much
  int64_t probes_max = 30;
};

struct ProbePlan {
  double level = 0;
  int64_t requests = 0;
  int64_t part = 1;  // 2 and above: more of the same level, to be judged together
  bool operator==(const ProbePlan&) const = default;
};

enum class SearchEnd {
  kOpen,          // not ended
  kPrecise,       // the interval is as narrow as asked for
  kUndecided,     // what lies inside the interval cannot be told apart with these probes
  kMaxPassed,     // the highest level allowed passes
  kMinFailed,     // the lowest level allowed fails
  kProbesUsedUp,  // probes_max
};
const char* search_end_name(SearchEnd end);

struct SearchAnswer {
  SearchEnd end = SearchEnd::kOpen;
  std::optional<double> lower, upper;  // highest level that passed, lowest that failed
  /// Between them (their geometric mean); the lower one where levels are whole numbers. nullopt
  /// unless both are known.
  std::optional<double> value;
};

class RateSearch {
 public:
  explicit RateSearch(const SearchOptions& options);

  /// What to run now; nullopt when the search has ended. Stays the same until report().
  std::optional<ProbePlan> next() const;
  /// The judgement of everything seen at next()->level. Requires next() (checked).
  void report(Verdict verdict);

  SearchAnswer answer() const;
  int64_t probes() const { return probes_; }

 private:
  struct Step {
    std::optional<double> level;  // nullopt: ended, for the reason below
    SearchEnd end = SearchEnd::kOpen;
  };
  Step bracket() const;
  Step narrow() const;
  double rounded(double level) const;
  /// The level between a < b to look at; nullopt if they are near enough.
  std::optional<double> between(double a, double b) const;
  void plan(double level);
  void decide_next();

  SearchOptions options_;
  std::optional<ProbePlan> next_;
  SearchEnd end_ = SearchEnd::kOpen;
  std::optional<double> passed_, failed_;
  std::vector<double> undecided_;  // ascending
  int64_t probes_ = 0, seen_ = 0;  // seen_: requests at the present level
};

}  // namespace prony::load
