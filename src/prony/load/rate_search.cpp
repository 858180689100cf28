#include "prony/load/rate_search.hpp"

#include <algorithm>
#include <cmath>

#include "prony/core/check.hpp"

namespace prony::load {

const char* verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return "pass";
    case Verdict::kFail:
      return "fail";
    case Verdict::kUndecided:
      break;
  }
  return "undecided";
}

const char* search_end_name(SearchEnd end) {
  switch (end) {
    case SearchEnd::kPrecise:
      return "precise";
    case SearchEnd::kUndecided:
      return "undecided";
    case SearchEnd::kMaxPassed:
      return "max_passed";
    case SearchEnd::kMinFailed:
      return "min_failed";
    case SearchEnd::kProbesUsedUp:
      return "probes_used_up";
    case SearchEnd::kOpen:
      break;
  }
  return "open";
}

RateSearch::RateSearch(const SearchOptions& options) : options_(options) {
  PRONY_CHECK(options.probe_requests > 0 && options.probes_max > 0, "a search without probes");
  PRONY_CHECK(options.level_min > 0 && options.level_min <= options.level_max, "empty range");
  PRONY_CHECK(options.precision > 0, "a precision of nothing");
  plan(std::clamp(options.start, options.level_min, options.level_max));
}

double RateSearch::rounded(double level) const {
  return options_.integral ? std::max(1.0, std::round(level)) : level;
}

std::optional<ProbePlan> RateSearch::next() const {
  return next_;
}

void RateSearch::plan(double level) {
  next_ = ProbePlan{rounded(level), options_.probe_requests, 1};
  seen_ = 0;
}

void RateSearch::report(Verdict verdict) {
  PRONY_CHECK(next_.has_value(), "a report after the end");
  ++probes_;
  const ProbePlan last = *next_;
  seen_ += last.requests;
  next_.reset();
  const bool more = verdict == Verdict::kUndecided && last.part <= options_.extensions_max;
  if (more && probes_ < options_.probes_max) {
    next_ = ProbePlan{last.level, 3 * seen_, last.part + 1};
    return;
  }
  switch (verdict) {
    case Verdict::kPass:
      passed_ = last.level;  // never below an earlier one: probes lie inside the bracket
      break;
    case Verdict::kFail:
      failed_ = last.level;
      break;
    case Verdict::kUndecided:
      undecided_.insert(std::upper_bound(undecided_.begin(), undecided_.end(), last.level),
                        last.level);
      break;
  }
  decide_next();
}

void RateSearch::decide_next() {
  const Step step = passed_ && failed_ ? narrow() : bracket();
  if (!step.level) {
    end_ = step.end;
  } else if (probes_ >= options_.probes_max) {
    end_ = SearchEnd::kProbesUsedUp;
  } else {
    plan(*step.level);
  }
}

RateSearch::Step RateSearch::bracket() const {
  // Levels seen reach from `low` to `high`; there is at least one.
  double low = std::numeric_limits<double>::infinity(), high = 0;
  const auto see = [&](double level) {
    low = std::min(low, level);
    high = std::max(high, level);
  };
  if (passed_) see(*passed_);
  if (failed_) see(*failed_);
  for (const double level : undecided_) see(level);
  const double top = rounded(options_.level_max), bottom = rounded(options_.level_min);
  // Upwards first: a level that fails is found out soon, and says how far away the answer is.
  if (!failed_) {
    if (high < top) return {.level = std::min(2 * high, top)};
    if (passed_ && *passed_ >= top) return {.level = {}, .end = SearchEnd::kMaxPassed};
  }
  if (!passed_) {
    if (low > bottom) return {.level = std::max(low / 2, bottom)};
    if (failed_ && *failed_ <= bottom) return {.level = {}, .end = SearchEnd::kMinFailed};
  }
  return {.level = {}, .end = SearchEnd::kUndecided};
}

std::optional<double> RateSearch::between(double a, double b) const {
  if (b <= a * (1 + options_.precision)) return std::nullopt;
  if (!options_.integral) return std::sqrt(a * b);
  if (b - a <= 1) return std::nullopt;
  return std::clamp(std::round(std::sqrt(a * b)), a + 1, b - 1);
}

RateSearch::Step RateSearch::narrow() const {
  const double a = *passed_, b = *failed_;
  // Only those inside count: one that was passed over lies outside by now.
  std::vector<double> inside;
  for (const double level : undecided_) {
    if (a < level && level < b) inside.push_back(level);
  }
  if (inside.empty()) {
    if (const auto level = between(a, b)) return {.level = level};
    return {.level = {}, .end = SearchEnd::kPrecise};
  }
  if (!between(a, b)) return {.level = {}, .end = SearchEnd::kPrecise};
  const auto below = between(a, inside.front()), above = between(inside.back(), b);
  if (below && (!above || inside.front() / a >= b / inside.back())) return {.level = below};
  if (above) return {.level = above};
  return {.level = {}, .end = SearchEnd::kUndecided};
}

SearchAnswer RateSearch::answer() const {
  SearchAnswer out{end_, passed_, failed_, std::nullopt};
  if (passed_ && failed_) out.value = options_.integral ? *passed_ : std::sqrt(*passed_ * *failed_);
  return out;
}

}  // namespace prony::load
