// Outcome: what came back from a Driver, with its rows at hand, for tests.
// Thread safety: a value.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "prony/load/driver.hpp"
#include "prony/record/request_row.hpp"
#include "prony/record/row_source.hpp"

namespace prony::load {

struct Outcome {
  explicit Outcome(LoadResult result)
      : rows(record::all_rows(result.rows)),
        client(std::move(result.client)),
        t_start_ns(result.t_start_ns),
        t_end_ns(result.t_end_ns),
        interrupted(result.interrupted),
        server(std::move(result.server)) {}
  std::vector<record::RequestRow> rows;
  ClientMeters client;
  core::Nanos t_start_ns, t_end_ns;
  bool interrupted;
  std::string server;
};

inline std::map<record::Status, int> by_status(const Outcome& result) {
  std::map<record::Status, int> counts;
  for (const auto& row : result.rows) ++counts[row.status];
  return counts;
}

}  // namespace prony::load
