// Claims: published statements about inference as data, data/claims/*.yaml. A claim brings its own
// inputs with units and the checks that can refute it; it holds no verdict. docs/audit.md describes
// the format. Thread safety: values and pure functions.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"

namespace prony::audit {

enum class InputKind {
  kClaimed,   // as the claim states it
  kFact,      // from a named reference
  kAssumed,   // a stand-in with a reason; named in the answer
  kHardware,  // from the catalogue
  kModel,     // from the catalogue
  kMissing,   // the claim needs it and does not give it
};

struct Input {
  std::string name;
  InputKind kind = InputKind::kClaimed;
  std::string text;   // quantity with its unit; a catalogue id; why it is missing
  std::string field;  // of the catalogue entry
  std::string ref;
  int line = 0;
};

/// What a check compares, and what its failure means.
enum class CheckKind {
  // need <= have, or the claim is impossible.
  kCapacity,   // memory needed and there
  kRoofline,   // work against the dense peak; `best` is the best share ever published
  kBandwidth,  // bytes against memory bandwidth; `best` too
  kLink,       // bytes against one-way link bandwidth; `best` too
  kLittle,     // arrivals x time in system against the number in flight
  kOrder,      // any other order that cannot be otherwise
  // printed == expected within `tolerance`, or impossible.
  kFormula,     // the claim's own formula gives its printed number, in its unit
  kArithmetic,  // printed numbers follow from each other
  kDatasheet,   // a figure against the vendor's
  kFact,        // a statement in words against its documentation
  // Failure is implausible.
  kPlausible,  // need <= have
  kSimilar,    // printed == expected
  // Failure leaves the claim open: the sample is too small to show it.
  kSample,  // need <= have
};
std::string_view check_kind_name(CheckKind kind);

struct Check {
  std::string name;
  CheckKind kind = CheckKind::kOrder;
  std::string left, right;     // need and have, or printed and expected: expressions, or words
  std::optional<double> best;  // share of `right`
  double tolerance = 0;        // relative
  std::string reading;         // the claim can be read in several ways; this check is of that one
  std::string condition;       // under which a failure refutes: "without offload"
  std::string note;
  int line = 0;
};

struct Claim {
  std::string id, where, statement, source;
  bool control = false;  // an honest figure: the auditor fails if it calls it impossible
  std::vector<Input> inputs;
  std::vector<Check> checks;
  int line = 0;
};

inline constexpr double kFormulaTolerance = 0.02, kDatasheetTolerance = 0.02;

/// `name` is the file, for messages. Error: kInvalidArgument, "NAME:LINE: ...".
Result<std::vector<Claim>> parse_claims(std::string_view text, std::string_view name);

/// The given files, or all of data/claims where `paths` is empty. Ids are unique over all files.
Result<std::vector<Claim>> read_claims(const std::vector<std::string>& paths);

}  // namespace prony::audit
