// Verdict: one line of the table of `prony certify`: what was served, what was measured, how far
// apart they were, how far they may be. Thread safety: values and pure functions.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/record/record.hpp"

namespace prony::certify {

enum class Outcome { kPass, kFail, kSkipped };
std::string_view outcome_name(Outcome outcome);

struct Verdict {
  std::string name;       // of the case, and of the figure where a case has several
  std::string group;      // "fault", "timing"
  std::string condition;  // what the server did, or under what load
  std::string complaint;  // public issue that it reproduces; empty: none
  std::string served, measured;
  std::optional<double> error, limit;  // in `unit`; |error| <= limit passes
  std::string unit;
  Outcome outcome = Outcome::kPass;
  std::string why;  // not passed: what was found and what was expected

  /// The first reason stands.
  void fail(std::string reason) {
    if (outcome == Outcome::kFail) return;
    outcome = Outcome::kFail;
    why = std::move(reason);
  }
};

/// A figure against its limit; fails if |error| > limit.
Verdict figure(std::string name, std::string condition, double error, double limit,
               std::string unit);

struct Report {
  std::vector<Verdict> verdicts;
  double wall_s = 0;
  record::Environment environment;  // where it ran; the caller's to fill
  int count(Outcome outcome) const;
  bool passed() const { return count(Outcome::kFail) == 0; }
};

/// Schema prony.certify/1 (docs/schema).
core::Json to_json(const Report& report);
/// For people: one line a verdict, and the sum.
std::string to_table(const Report& report);

}  // namespace prony::certify
