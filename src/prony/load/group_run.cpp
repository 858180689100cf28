#include "prony/load/group_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "prony/load/start_lead.hpp"
#include "prony/record/row_codec.hpp"

namespace prony::load {
namespace {

using core::Json;
using core::Nanos;

// Prompts and warm-up of the slowest rank: the feed waits two minutes at most, a warm-up request as
// long as its time-outs allow.
constexpr Nanos kReadyTimeout = 600 * core::kNanosPerSecond;
constexpr Nanos kMessageTimeout = 60 * core::kNanosPerSecond;
constexpr int kClockRounds = 64;
// From the agreement to instant 0: time for the message, and for the loops to take their phase.
constexpr Nanos kLead = 80 * core::kNanosPerMilli + kStartLead;
constexpr size_t kBatchBytes = 1 << 20;
constexpr double kLateMs = 1;  // a rank that starts later than this did not send what was meant

std::string host_name() {
  char name[256] = {};
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "unknown";
}

// Value and count of each bucket that is not empty; recording them again gives an equal histogram.
Json histogram_to_json(const stats::Histogram& histogram) {
  Json out = Json::array();
  for (uint64_t rank = 1; rank <= histogram.count();) {
    const auto value = histogram.value_at_rank(rank);
    // The rest lies above what the histogram holds, and shall there too.
    const uint64_t upto = value ? histogram.count_at_or_below(*value) : histogram.count();
    const uint64_t shown = value ? std::min(*value, histogram.options().value_max) : UINT64_MAX;
    out.push_back(Json::array({shown, upto - rank + 1}));
    rank = upto + 1;
  }
  return out;
}
bool add_histogram(const Json& json, stats::Histogram& into) {
  if (!json.is_array()) return false;
  for (const auto& bucket : json) {
    if (!bucket.is_array() || bucket.size() != 2 || !bucket[0].is_number_unsigned() ||
        !bucket[1].is_number_unsigned()) {
      return false;
    }
    into.record(bucket[0].get<uint64_t>(), bucket[1].get<uint64_t>());
  }
  return true;
}

// The counters of ClientMeters by name, once for both directions.
template <class Meters, class F>
void for_each_counter(Meters& meters, F&& visit) {
  visit("token_events", meters.token_events);
  visit("merged_events", meters.merged_events);
  visit("unstamped_events", meters.unstamped_events);
  visit("stamp_faults", meters.stamp_faults);
  visit("late_messages", meters.late_messages);
  visit("connections_lost", meters.connections_lost);
  visit("held_back", meters.held_back);
}

Json facts_of(const LoadResult& load, std::optional<double> steal_fraction, Nanos t_agreed_ns) {
  Json json = Json::object();
  json["host"] = host_name();
  json["process"] = static_cast<int64_t>(::getpid());
  json["requests"] = load.rows.size();
  json["start_late_ns"] = std::max<Nanos>(0, load.t_start_ns - t_agreed_ns);
  json["t_end_ns"] = load.t_end_ns;
  json["interrupted"] = load.interrupted;
  json["server"] = load.server;
  json["prony_device"] = load.prony_device;
  json["steal_fraction"] = steal_fraction ? Json(*steal_fraction) : Json();
  json["meters"] = meters_to_json(load.client);
  return json;
}

}  // namespace

Json meters_to_json(const ClientMeters& meters) {
  Json json = Json::object();
  for_each_counter(meters, [&](const char* name, int64_t value) { json[name] = value; });
  json["clock_step_max_ns"] = meters.clock_step_max_ns;
  json["loop_busy"] = meters.loop_busy;
  json["read_lag_ns"] = histogram_to_json(meters.read_lag_ns);
  json["issue_lag_ns"] = histogram_to_json(meters.issue_lag_ns);
  return json;
}

Result<void> add_meters(const Json& json, ClientMeters& into) {
  bool fits = json.is_object();
  const auto number = [&](const char* name) -> int64_t {
    const bool there = fits && json.contains(name) && json.at(name).is_number_integer();
    fits = fits && there;
    return there ? json.at(name).get<int64_t>() : 0;
  };
  for_each_counter(into, [&](const char* name, int64_t& value) { value += number(name); });
  into.clock_step_max_ns = std::max(into.clock_step_max_ns, number("clock_step_max_ns"));
  fits = fits && json.contains("loop_busy") && json.at("loop_busy").is_array();
  if (fits) {
    for (const auto& busy : json.at("loop_busy")) {
      fits = fits && busy.is_number();
      if (fits) into.loop_busy.push_back(busy.get<double>());
    }
  }
  fits = fits && add_histogram(json.value("read_lag_ns", Json()), into.read_lag_ns) &&
         add_histogram(json.value("issue_lag_ns", Json()), into.issue_lag_ns);
  return fits ? Result<void>() : environment_error("meters that this build does not know");
}

void shift_stamps(record::RequestRow& row, Nanos by_ns) {
  row.t_intended_ns += by_ns;
  for (auto* stamp :
       {&row.t_connect_begin_ns, &row.t_connect_ns, &row.t_send_ns, &row.t_sent_ns,
        &row.t_headers_ns, &row.t_first_event_ns, &row.t_first_token_ns, &row.t_first_output_ns,
        &row.t_last_token_ns, &row.t_done_ns, &row.t_close_ns}) {
    if (*stamp) **stamp += by_ns;
  }
  for (auto& event : row.events) {
    event.t_kernel_ns += by_ns;
    event.t_user_ns += by_ns;
  }
}

GroupRun::GroupRun(core::Group* group)
    : group_(group != nullptr ? group : &single_), ranks_(static_cast<size_t>(group_->size())) {}

Result<void> GroupRun::check(const BenchOptions& options, const LoadShape& shape,
                             const workload::Schedule& schedule) const {
  if (alone()) return {};
  if (options.until_ci) {
    return invalid_argument(
        fmt::format("--until-ci: found with {} processes, which cannot end together; expected one, "
                    "or --num-prompts or --duration",
                    group_->size()));
  }
  if (schedule.has_sessions()) {
    return invalid_argument(
        fmt::format("--dataset: found conversations and {} processes; their turns need one process",
                    group_->size()));
  }
  if (shape.max_concurrency && *shape.max_concurrency < group_->size()) {
    return invalid_argument(
        fmt::format("--max-concurrency: found {}, expected at least one for "
                    "each of {} processes",
                    *shape.max_concurrency, group_->size()));
  }
  return {};
}

int64_t GroupRun::count_of(int64_t total) const {
  const int64_t size = group_->size(), rank = group_->rank();
  return total / size + (rank < total % size ? 1 : 0);
}

std::vector<workload::ScheduleEntry> GroupRun::entries_of(
    const workload::Schedule& schedule) const {
  std::vector<workload::ScheduleEntry> out;
  const auto count = count_of(static_cast<int64_t>(schedule.entries.size()));
  out.reserve(static_cast<size_t>(count));
  for (int64_t local = 0; local < count; ++local) {
    out.push_back(schedule.entries[static_cast<size_t>(global(local))]);
    out.back().index = local;
  }
  return out;
}

LoadShape GroupRun::shape_of(const LoadShape& shape) const {
  auto mine = shape;
  if (mine.max_concurrency) mine.max_concurrency = count_of(*mine.max_concurrency);
  if (mine.rate_per_s) *mine.rate_per_s /= group_->size();
  return mine;
}

Result<void> GroupRun::measure_clocks(bool before) {
  const auto clocks = group_->measure_clocks(kClockRounds, kMessageTimeout);
  if (!clocks) return clocks.error();
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    (before ? ranks_[rank].before : ranks_[rank].after) = clocks.value()[rank];
  }
  return {};
}

bool GroupRun::went_wrong(const Error& error) {
  error_ = error;
  return false;
}

bool GroupRun::wait_until_ready() {
  if (alone()) return true;
  if (auto ready = group_->agree({}, kReadyTimeout); !ready) return went_wrong(ready.error());
  auto measured = measure_clocks(true);
  return measured ? true : went_wrong(measured.error());
}

Result<Nanos> GroupRun::agree_start() {
  const auto t_start =
      group_->broadcast(std::to_string(core::monotonic_ns() + kLead), kMessageTimeout);
  if (!t_start) return t_start.error();
  const auto& text = t_start.value();
  Nanos t_first_ns = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), t_first_ns);
  if (code != std::errc() || end != text.data() + text.size()) {
    return environment_error("rank 0 sent what this build does not know");
  }
  return t_first_ns - ranks_[static_cast<size_t>(group_->rank())].before.offset_ns;
}

bool GroupRun::wait_for_start() {
  if (alone()) return true;
  const auto t_start = agree_start();
  if (!t_start) return went_wrong(t_start.error());
  t_agreed_ns_ = t_start.value();
  // The last stretch awake: a sleeper wakes up to 0.1 ms late.
  const Nanos t_driver = t_agreed_ns_ - kStartLead;
  core::MonotonicClock().sleep_until(t_driver - core::kNanosPerMilli);
  while (core::monotonic_ns() < t_driver) {
  }
  return true;
}

Result<void> GroupRun::wait_for_all(Nanos timeout_ns) {
  if (alone()) return {};
  if (auto all = group_->barrier(timeout_ns); !all) return all;
  return measure_clocks(false);
}

// Between the two comparisons a clock is taken to drift evenly.
Nanos GroupRun::offset_at(size_t rank, Nanos t_theirs_ns) const {
  const auto &a = ranks_[rank].before, &b = ranks_[rank].after;
  const Nanos t = t_theirs_ns + a.offset_ns;
  if (b.t_measured_ns <= a.t_measured_ns) return a.offset_ns;
  const double part = static_cast<double>(t - a.t_measured_ns) /
                      static_cast<double>(b.t_measured_ns - a.t_measured_ns);
  return a.offset_ns + static_cast<Nanos>(static_cast<double>(b.offset_ns - a.offset_ns) *
                                          std::clamp(part, 0.0, 1.0));
}

Result<LoadResult> GroupRun::collect(LoadResult mine, const record::RowStore::Options& rows,
                                     std::optional<double>& steal_fraction) {
  if (alone()) return mine;
  const auto facts = core::write_json(facts_of(mine, steal_fraction, t_agreed_ns_));
  if (!facts) return facts.error();
  const auto all = group_->gather(facts.value(), kMessageTimeout);
  if (!all) return all.error();
  if (!is_first()) {
    if (auto sent = send_rows(mine); !sent) return sent.error();
    return mine;
  }
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    auto json = core::parse_json(all.value()[rank], fmt::format("rank {}", rank));
    if (!json) return environment_error(json.error().message);
    if (const auto& steal = json.value().at("steal_fraction"); steal.is_number()) {
      steal_fraction = std::max(steal_fraction.value_or(0), steal.get<double>());
    }
    ranks_[rank].facts = std::move(json).value();
  }
  return merge(std::move(mine), rows);
}

// A batch is rows one behind the other, each with its length before it.
Result<void> GroupRun::send_rows(const LoadResult& mine) {
  Result<void> done;
  std::string batch, one;
  const auto send = [&] {
    if (done && !batch.empty()) done = group_->send_to_first(batch, kMessageTimeout);
    batch.clear();
  };
  mine.rows.for_each([&](const record::RequestRow& row) {
    auto numbered = row;
    numbered.index = global(row.index);
    one.clear();
    record::encode_row(numbered, one);
    const auto length = static_cast<uint32_t>(one.size());
    batch.append(reinterpret_cast<const char*>(&length), sizeof length);
    batch += one;
    if (batch.size() >= kBatchBytes) send();
  });
  send();
  if (done) done = group_->send_to_first("", kMessageTimeout);
  if (!done) return done;
  return mine.rows.status();
}

Result<LoadResult> GroupRun::merge(LoadResult mine, const record::RowStore::Options& options) {
  LoadResult all;
  all.t_start_ns = mine.t_start_ns;
  all.t_end_ns = mine.t_end_ns;
  record::RowStore rows(options);
  auto& kept = rows.add_appender();
  record::RequestRow row;
  mine.rows.for_each([&](const record::RequestRow& own) {
    row = own;
    row.index = global(own.index);
    kept.append(row);
  });
  for (int rank = 1; rank < group_->size(); ++rank) {
    for (;;) {
      const auto batch = group_->receive_from(rank, kMessageTimeout);
      if (!batch) return batch.error();
      std::string_view rest = batch.value();
      if (rest.empty()) break;
      while (!rest.empty()) {
        uint32_t length = 0;
        bool whole = rest.size() >= sizeof length;
        if (whole) {
          std::memcpy(&length, rest.data(), sizeof length);
          rest.remove_prefix(sizeof length);
          whole = rest.size() >= length && record::decode_row(rest.substr(0, length), row);
        }
        if (!whole) return environment_error(fmt::format("rank {} sent a broken row", rank));
        rest.remove_prefix(length);
        shift_stamps(row, offset_at(static_cast<size_t>(rank), row.t_intended_ns));
        kept.append(row);
      }
    }
  }
  kept.flush();
  rows.seal();
  all.rows = std::move(rows);
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const auto& facts = ranks_[rank].facts;
    if (auto added = add_meters(facts.at("meters"), all.client); !added) return added.error();
    const auto t_end = facts.at("t_end_ns").get<Nanos>();
    all.t_end_ns = std::max(all.t_end_ns, t_end + offset_at(rank, t_end));
    all.interrupted = all.interrupted || facts.at("interrupted").get<bool>();
    if (all.server.empty()) all.server = facts.at("server").get<std::string>();
    if (all.prony_device.empty()) all.prony_device = facts.at("prony_device").get<std::string>();
  }
  return all;
}

void GroupRun::report(record::Record& record) const {
  if (alone()) return;
  Json ranks = Json::array();
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    const auto& [facts, before, after] = ranks_[rank];
    const double late_ms = core::to_ms(facts.at("start_late_ns").get<Nanos>());
    Json json = Json::object();
    json["rank"] = rank;
    json["host"] = facts.at("host");
    json["process"] = facts.at("process");
    json["requests"] = facts.at("requests");
    json["start_late_ms"] = late_ms;
    json["clock_offset_ms"] = core::to_ms(before.offset_ns);
    json["clock_error_ms"] = core::to_ms(std::max(before.error_ns, after.error_ns));
    json["clock_drift_ms"] = core::to_ms(after.offset_ns - before.offset_ns);
    json["steal_fraction"] = facts.at("steal_fraction");
    json["loop_busy"] = facts.at("meters").at("loop_busy");
    json["token_events"] = facts.at("meters").at("token_events");
    json["merged_events"] = facts.at("meters").at("merged_events");
    json["held_back"] = facts.at("meters").at("held_back");
    ranks.push_back(std::move(json));
    if (late_ms > kLateMs) {
      record.validity.refuse(
          fmt::format("rank {} began {:.3f} ms after the agreed instant, at most "
                      "{:g} ms allowed",
                      rank, late_ms, kLateMs));
    }
  }
  record.client["ranks"] = std::move(ranks);
}

}  // namespace prony::load
