// audit: claims against bounds. The verdict is computed from the checks every time; a claim file
// cannot state one.
//   impossible         a hard check fails: capacity, roofline, bandwidth, link, Little's law, an
//                      order, the claim's own formula or arithmetic, a data sheet, documentation
//   implausible        beyond the best published share of a bound, or a soft check fails
//   consistent         at least one check could be made and none fails
//   cannot be checked  every check needs an input that the claim does not give, or its sample
//                      cannot show what it says
// A claim that can be read in several ways has the verdict of its most favourable reading, and the
// answer names the verdict of each.
// Thread safety: pure functions; catalogue files are read on every call.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prony/audit/claim.hpp"
#include "prony/audit/quantity.hpp"
#include "prony/core/result.hpp"

namespace prony::audit {

enum class Verdict { kConsistent, kCannotBeChecked, kImplausible, kImpossible };
std::string_view verdict_name(Verdict verdict);

enum class Outcome { kHolds, kFails, kBeyondBest, kUnknown };
std::string_view outcome_name(Outcome outcome);

struct CheckResult {
  Check check;
  Outcome outcome = Outcome::kUnknown;
  Verdict verdict = Verdict::kCannotBeChecked;  // what this check alone says
  std::string arithmetic;                       // one line, with values and units
  std::optional<Quantity> left, right;
  std::optional<double> ratio;  // left / right where the dimensions agree
  std::string missing;          // input that was not given
};

struct InputValue {
  Input input;
  std::optional<Quantity> quantity;
  std::string ref;
};

struct ReadingVerdict {
  std::string reading;
  Verdict verdict = Verdict::kCannotBeChecked;
};

struct ClaimResult {
  Claim claim;
  Verdict verdict = Verdict::kCannotBeChecked;
  std::vector<std::string> conditions;  // of the failures behind the verdict
  std::vector<ReadingVerdict> readings;
  std::vector<InputValue> inputs;
  std::vector<CheckResult> checks;
};

/// Error: kInvalidArgument, naming claim and check: unknown names, catalogue ids, dimensions that
/// do not agree where the check is not about them.
Result<ClaimResult> audit(const Claim& claim);
Result<std::vector<ClaimResult>> audit(std::span<const Claim> claims);

/// Controls that were called impossible: the auditor's own mistakes. Empty if all is well.
std::vector<std::string> refuted_controls(std::span<const ClaimResult> results);

}  // namespace prony::audit
