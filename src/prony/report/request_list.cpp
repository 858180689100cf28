#include "prony/report/request_list.hpp"

#include <algorithm>
#include <set>

#include "prony/record/row_metrics.hpp"
#include "prony/report/base64.hpp"
#include "prony/report/html.hpp"

namespace prony::report {
namespace {

using core::Json;
using core::Nanos;
using record::RequestRow;

constexpr size_t kErrorCharacters = 200;
/// Of a run too long to list whole, the parts kept for a reason.
constexpr size_t kSlowestListed = 1'000;
constexpr int64_t kFailedListed = 10'000;

void digits(std::string& out, uint64_t value) {
  while (value >= 0x80) {
    out.push_back(static_cast<char>(value | 0x80));
    value >>= 7;
  }
  out.push_back(static_cast<char>(value));
}

std::optional<int64_t> micros(const std::optional<Nanos>& t, Nanos origin) {
  if (!t) return std::nullopt;
  return std::max<Nanos>(0, *t - origin + 500) / 1000;
}

uint64_t zigzag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}

// 0 is "none".
void optional_digits(std::string& out, const std::optional<int64_t>& value) {
  digits(out, value ? static_cast<uint64_t>(*value) + 1 : 0);
}

RequestList::Listed listed_of(const RequestRow& row) {
  const Nanos intended = row.t_intended_ns;
  RequestList::Listed out;
  out.index = row.index;
  out.t_intended_ns = intended;
  out.queue_us = micros(row.t_send_ns, intended);
  out.ttft_us = micros(row.t_first_token_ns, row.t_send_ns.value_or(intended));
  out.e2e_us = micros(row.t_last_token_ns, row.t_send_ns.value_or(intended));
  out.end_us = micros(record::last_stamp_ns(row), intended);
  out.input_tokens = row.prompt_tokens.value_or(row.input_tokens_asked);
  out.output_tokens = static_cast<int64_t>(record::tokens_of(row));
  out.status = row.status;
  return out;
}

bool faster(const RequestList::Listed& a, const RequestList::Listed& b) {
  return a.ttft_us.value_or(0) > b.ttft_us.value_or(0);
}

double longest_gap(const RequestRow& row) {
  Nanos longest = 0;
  for (size_t i = 1; i < row.events.size(); ++i) {
    longest = std::max(longest, row.events[i].t_kernel_ns - row.events[i - 1].t_kernel_ns);
  }
  return static_cast<double>(longest);
}

// Distances in us, from the intended start on; the events of a long answer that no longer fit are
// left out at its end.
std::string encoded_events(const RequestRow& row) {
  std::string out;
  int64_t before = 0;
  const size_t count = std::min(row.events.size(), RequestList::kEventsMax);
  for (size_t i = 0; i < count; ++i) {
    const int64_t at = std::max(before, *micros(row.events[i].t_kernel_ns, row.t_intended_ns));
    digits(out, static_cast<uint64_t>(at - before));
    before = at;
  }
  return out;
}

}  // namespace

RequestList::RequestList(int64_t total, int64_t listed_max)
    : total_(total), listed_max_(listed_max) {
  const int64_t common =
      std::max<int64_t>(1, listed_max - static_cast<int64_t>(kSlowestListed) - kFailedListed);
  step_ = total <= listed_max ? 1 : (total + common - 1) / common;
}

void RequestList::keep_detail(std::vector<Detailed>& kept, double remarkable,
                              const RequestRow& row) {
  if (kept.size() == kDetailedMax && kept.front().remarkable >= remarkable) return;
  kept.push_back({remarkable, row.index, encoded_events(row),
                  static_cast<int64_t>(std::min(row.events.size(), kEventsMax))});
  std::push_heap(kept.begin(), kept.end());
  if (kept.size() <= kDetailedMax) return;
  std::pop_heap(kept.begin(), kept.end());
  kept.pop_back();
}

void RequestList::add(const RequestRow& row) {
  const bool failed = row.status != record::Status::kOk;
  const auto entry = listed_of(row);
  if (position_++ % step_ == 0) {
    common_.push_back(entry);
  } else if (failed && failed_ < kFailedListed) {
    special_.push_back(entry);
  } else if (entry.ttft_us) {
    slowest_.push_back(entry);
    std::push_heap(slowest_.begin(), slowest_.end(), faster);
    if (slowest_.size() > kSlowestListed) {
      std::pop_heap(slowest_.begin(), slowest_.end(), faster);
      slowest_.pop_back();
    }
  }
  if (failed && static_cast<size_t>(failed_) < kDetailedMax && !row.error.empty()) {
    errors_[row.index] = shorten(row.error, kErrorCharacters);
  }
  const auto order = -static_cast<double>(position_);
  if (!row.events.empty()) {
    keep_detail(by_ttft_, static_cast<double>(entry.ttft_us.value_or(0)), row);
    keep_detail(by_gap_, longest_gap(row), row);
    if (failed) keep_detail(by_failure_, order, row);
    keep_detail(by_order_, order, row);
  }
  failed_ += failed;
}

std::vector<RequestList::Listed> RequestList::slowest(size_t count) const {
  auto all = listed();
  std::stable_sort(all.begin(), all.end(), faster);
  while (!all.empty() && !all.back().ttft_us) all.pop_back();
  if (all.size() > count) all.resize(count);
  return all;
}

std::vector<RequestList::Listed> RequestList::listed() const {
  auto all = common_;
  all.insert(all.end(), special_.begin(), special_.end());
  all.insert(all.end(), slowest_.begin(), slowest_.end());
  std::stable_sort(all.begin(), all.end(),
                   [](const Listed& a, const Listed& b) { return a.index < b.index; });
  return all;
}

Json RequestList::to_json(Nanos origin_ns) const {
  std::string rows;
  int64_t index = 0, count = 0, before = 0;
  for (const auto& one : listed()) {
    ++count;
    digits(rows, static_cast<uint64_t>(one.index - index));
    index = one.index;
    const int64_t start = (one.t_intended_ns - origin_ns) / 1000;
    digits(rows, zigzag(start - before));  // closed loops do not start quite in order
    before = start;
    optional_digits(rows, one.queue_us);
    optional_digits(rows, one.ttft_us);
    optional_digits(rows, one.e2e_us);
    optional_digits(rows, one.end_us);
    digits(rows, static_cast<uint64_t>(one.input_tokens));
    digits(rows, static_cast<uint64_t>(one.output_tokens));
    digits(rows, static_cast<uint64_t>(one.status));
  }
  Json json;
  json["n"] = total_;
  json["shown"] = count;
  json["rows"] = base64(rows);
  auto& statuses = json["statuses"] = Json::array();
  for (int i = 0; i <= static_cast<int>(record::Status::kUnfinished); ++i) {
    statuses.push_back(record::status_name(static_cast<record::Status>(i)));
  }
  auto& events = json["events"] = Json::object();
  int64_t left = kAllEventsMax;
  std::set<int64_t> seen;
  for (const auto* kept : {&by_failure_, &by_ttft_, &by_gap_, &by_order_}) {
    auto sorted = *kept;
    std::sort(sorted.begin(), sorted.end());  // the most remarkable first
    for (const auto& one : sorted) {
      if (seen.contains(one.index) || one.count > left) continue;
      seen.insert(one.index);
      left -= one.count;
      events[std::to_string(one.index)] = base64(one.events);
    }
  }
  auto& errors = json["errors"] = Json::object();
  for (const auto& [at, text] : errors_) errors[std::to_string(at)] = text;
  return json;
}

}  // namespace prony::report
