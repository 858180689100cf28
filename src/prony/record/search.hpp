// Search: the document of `--find`, prony.search/1 (docs/schema/prony.search.1.json): what was
// looked for, the answer with its interval, how each level was judged and on what evidence, and
// every probe. Definitions: docs/sweeps.md. Thread safety: values and pure functions.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/core/result.hpp"
#include "prony/record/record.hpp"

namespace prony::record {

inline constexpr const char* kSearchSchema = "prony.search/1";

/// One term of the objective at one level: the share of requests that exceed its bound against the
/// share allowed (a mean: the mean against its bound).
struct SearchTerm {
  std::string text;  // "ttft_p99<=500ms"
  double allowed = 0;
  int64_t n = 0, bad = 0;
  double effective_n = 0;
  std::optional<double> estimate, lower, upper;
  std::string verdict;  // "pass", "fail", "undecided"
};

struct SearchLevel {
  double level = 0;
  std::string verdict;
  int64_t requests = 0;  // over its probes
  bool overloaded = false;
  std::vector<SearchTerm> terms;
};

struct SearchProbe {
  double level = 0;
  int64_t part = 1;
  int64_t requests = 0;
  uint64_t seed = 0;
  std::string record_path;  // relative; empty: not kept
  Validity validity;
  bool judged = false;  // false: void, the client spoilt it
  Metrics metrics;
};

struct Search {
  std::string objective;  // "max-rate", "max-concurrency"
  std::string unit;       // "requests/s", "requests in flight"
  std::string slo;
  double precision = 0;
  int64_t probe_requests = 0;
  uint64_t seed = 0;
  std::string end;  // "precise", "undecided", ...; "interrupted"
  std::optional<double> value, lower, upper;
  std::string limiting;  // the term that breaks above the answer; empty: not known
  bool overloaded_above = false;
  std::vector<SearchLevel> levels;  // in the order they were looked at
  std::vector<SearchProbe> probes;
  std::string started_at;
  std::vector<std::string> command;
  std::string label, model, system_kind;
  Environment environment;
};

core::Json search_to_json(const Search& search);
core::Json search_json_schema();
/// Error: a document that does not keep the schema, then a bug of ours.
Result<std::string> search_text(const Search& search);

}  // namespace prony::record
