// RequestList: what the page's list of single requests holds, collected in one pass. Every request
// of a run up to kListedMax; of a longer one the slowest to the first token, the failed ones and
// every k-th of the others. The token events are kept of few: the slowest, those with the longest
// gap, the first that failed and the first of all.
// The encoding is the page's own (web/src/requests.ts reads it): base 128 digits, least first, in
// base64, so that 10^5 requests are some 2 MB and not 8.
// Thread safety: none.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "prony/core/json.hpp"
#include "prony/record/row_source.hpp"

namespace prony::report {

class RequestList {
 public:
  static constexpr int64_t kListedMax = 100'000;
  static constexpr size_t kDetailedMax = 50;        // of each reason
  static constexpr size_t kEventsMax = 2'000;       // of one request
  static constexpr int64_t kAllEventsMax = 40'000;  // of the page

  /// `total`: rows that will come.
  explicit RequestList(int64_t total, int64_t listed_max = kListedMax);

  /// Every row of the run, by index.
  void add(const record::RequestRow& row);

  struct Listed {
    int64_t index = 0;
    core::Nanos t_intended_ns = 0;
    // us; nullopt: it never came to that
    std::optional<int64_t> queue_us, ttft_us, e2e_us, end_us;
    int64_t input_tokens = 0, output_tokens = 0;
    record::Status status = record::Status::kOk;
  };
  /// By index.
  std::vector<Listed> listed() const;
  /// The slowest of them to the first token, slowest first.
  std::vector<Listed> slowest(size_t count) const;
  int64_t total() const { return total_; }
  /// {"n", "rows", "statuses", "events": {index: ...}, "errors": {index: text}}; instants from
  /// `origin_ns`.
  core::Json to_json(core::Nanos origin_ns) const;

 private:
  // A request kept for its events. Ordered for a heap with the least remarkable one on top.
  struct Detailed {
    double remarkable = 0;
    int64_t index = 0;
    std::string events;  // encoded
    int64_t count = 0;
    bool operator<(const Detailed& other) const { return remarkable > other.remarkable; }
  };
  void keep_detail(std::vector<Detailed>& kept, double remarkable, const record::RequestRow& row);

  int64_t total_, listed_max_, step_;
  int64_t position_ = 0, failed_ = 0;
  std::vector<Listed> common_, special_;
  std::vector<Listed> slowest_;  // a heap by ttft_us
  std::vector<Detailed> by_ttft_, by_gap_, by_failure_, by_order_;
  std::map<int64_t, std::string> errors_;
};

}  // namespace prony::report
