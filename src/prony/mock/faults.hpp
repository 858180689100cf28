// The named faults of the mock: what servers have been seen to do, each a small change of the plan
// of an answer. The table is the documentation: `prony mock --list-faults` prints it. Sources: the
// complaints listed in the table's comments (repository#number of public issues).
// Thread safety: functions any thread.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "prony/core/result.hpp"
#include "prony/mock/plan.hpp"

namespace prony::mock {

struct Fault {
  std::string_view name;
  uint64_t parts;  // of the plan that it decides; faults with a part in common do not compose
  std::string_view summary;
  void (*apply)(Plan& plan, const RequestFacts& facts);
};

std::span<const Fault> all_faults();

/// The faults of these names, to be applied in the order of the table.
/// Error: kInvalidArgument, an unknown name, or two that do not compose, naming both.
Result<std::vector<const Fault*>> find_faults(const std::vector<std::string>& names);

/// Names joined with '+', as the stamps file has them; "none" without any.
std::string joined_names(std::span<const Fault* const> faults);

}  // namespace prony::mock
