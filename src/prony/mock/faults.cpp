#include "prony/mock/faults.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "prony/mock/fault_tables.hpp"

namespace prony::mock {
namespace {

std::vector<Fault> join_tables() {
  std::vector<Fault> all;
  for (const auto table : {stream_faults(), wire_faults(), whole_answer_faults()}) {
    all.insert(all.end(), table.begin(), table.end());
  }
  return all;
}

const Fault* find(std::string_view name) {
  const auto all = all_faults();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Fault& fault) { return fault.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

std::span<const Fault> all_faults() {
  static const std::vector<Fault> all = join_tables();
  return all;
}

Result<std::vector<const Fault*>> find_faults(const std::vector<std::string>& names) {
  std::vector<const Fault*> found;
  for (const std::string& name : names) {
    const Fault* fault = find(name);
    if (fault == nullptr) {
      return invalid_argument(
          fmt::format("--fault: found '{}', expected a name of --list-faults", name));
    }
    for (const Fault* other : found) {
      if ((other->parts & fault->parts) != 0) {
        return invalid_argument(
            fmt::format("--fault: '{}' and '{}' cannot be combined", other->name, fault->name));
      }
    }
    found.push_back(fault);
  }
  // By the table, so that the order of the flags does not matter.
  std::sort(found.begin(), found.end(), [](const Fault* a, const Fault* b) { return a < b; });
  return found;
}

std::string joined_names(std::span<const Fault* const> faults) {
  std::string joined;
  for (const Fault* fault : faults) {
    if (!joined.empty()) joined += '+';
    joined += fault->name;
  }
  return joined.empty() ? "none" : joined;
}

}  // namespace prony::mock
