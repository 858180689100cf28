#include "prony/load/self_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "prony/record/row_metrics.hpp"

namespace prony::load {
namespace {

using core::Json;

/// Prompts up to this many tokens go out in one system call, so that the time it took bounds how
/// much too early the send stamp may be. Longer ones wait for the network as well.
constexpr int32_t kOneWriteTokens = 1024;

double fraction(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

Json histogram_json(const stats::Histogram& histogram) {
  Json json = Json::object();
  json["n"] = histogram.count();
  for (const auto& [name, q] : {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1.0}}) {
    const auto value = histogram.quantile(q);
    json[name] = value ? Json(static_cast<double>(*value) / record::kNanosPerMs) : Json();
  }
  return json;
}

Json shift_json(const std::optional<Shift>& shift) {
  if (!shift) return Json();
  return Json{{"percentile", 100 * shift->quantile},
              {"value_ms", shift->value_ms},
              {"shift_ms", shift->shift_ms}};
}

// The two latencies that start on our side and the gaps, and what of each is the client's.
struct Shares {
  ClientShift ttft, intended, gaps;
};

void add_row(const record::RequestRow& row, Shares& shares) {
  if (row.status != record::Status::kOk) return;
  const auto ttft = record::ttft_ms(row);
  const auto intended = record::ttft_intended_ms(row);
  if (!ttft || !intended) return;
  const bool one_write = row.input_tokens_asked <= kOneWriteTokens && row.t_sent_ns;
  const double write = one_write ? core::to_ms(*row.t_sent_ns - *row.t_send_ns) : 0;
  shares.ttft.add(*ttft, write);
  shares.intended.add(*intended,
                      write + core::to_ms(std::max<core::Nanos>(0, row.issue_lag_ns.value_or(0))));
}

// Gaps between the events of a request, and what of each may be ours: the stamp of a merged event
// is an upper bound, so the gap before it is too long. Which one it was is not kept; taking the
// longest of its request for it bounds the shift from above. `own` is a scratch.
void add_gaps(const record::RequestRow& row, std::vector<double>& own, ClientShift& gaps) {
  if (row.status != record::Status::kOk || row.events.size() < 2) return;
  own.clear();
  for (size_t i = 1; i < row.events.size(); ++i) {
    own.push_back(core::to_ms(row.events[i].t_kernel_ns - row.events[i - 1].t_kernel_ns));
  }
  const auto merged = std::min(own.size(), static_cast<size_t>(row.merged_events));
  if (merged > 0) std::sort(own.begin(), own.end());
  const double typical = own[own.size() / 2];
  for (size_t i = 0; i < own.size(); ++i) {
    gaps.add(own[i], i >= own.size() - merged ? own[i] - typical : 0);
  }
}

void check_shift(const std::optional<Shift>& shift, const char* name, const SelfCheckLimits& limits,
                 record::Validity& validity) {
  if (!shift) return;
  const double allowed = std::max(limits.share_ms, limits.share_relative * shift->value_ms);
  if (shift->shift_ms <= allowed) return;
  validity.refuse(
      fmt::format("the client was late: it moves p{:g} of {} ({:.3f} ms) by {:.3f} ms, more than "
                  "the {:.3f} ms allowed",
                  100 * shift->quantile, name, shift->value_ms, shift->shift_ms, allowed));
}

void check_counts(const ClientMeters& client, const SelfCheckLimits& limits,
                  record::Validity& validity) {
  const double merged = fraction(client.merged_events, client.token_events);
  if (merged > limits.merged_fraction) {
    validity.refuse(fmt::format(
        "{} of {} token events ({:.2f} %) came in one read with later ones, so their stamps are "
        "upper bounds; at most {:g} % allowed",
        client.merged_events, client.token_events, 100 * merged, 100 * limits.merged_fraction));
  }
  const double unstamped = fraction(client.unstamped_events, client.token_events);
  if (unstamped > limits.merged_fraction) {
    validity.refuse(fmt::format(
        "{} of {} token events have no kernel receive stamp: how late they were read is unknown",
        client.unstamped_events, client.token_events));
  }
  for (size_t i = 0; i < client.loop_busy.size(); ++i) {
    if (client.loop_busy[i] <= limits.loop_busy) continue;
    validity.refuse(
        fmt::format("event loop {} was {:.0f} % busy, at most {:.0f} % allowed: use more --threads",
                    i, 100 * client.loop_busy[i], 100 * limits.loop_busy));
  }
  if (core::to_ms(client.clock_step_max_ns) > limits.clock_step_ms) {
    validity.refuse(fmt::format(
        "the wall clock was stepped by {:.3f} ms during the run, and kernel stamps come from it",
        core::to_ms(client.clock_step_max_ns)));
  }
  if (client.held_back > 0) {
    validity.refuse(fmt::format(
        "{} requests had to wait for a connection: the limit of open files is too low (ulimit -n)",
        client.held_back));
  }
}

}  // namespace

void ClientShift::add(double measured_ms, double share_ms) {
  measured_.add(measured_ms);
  corrected_.add(measured_ms - share_ms);
}

std::optional<Shift> ClientShift::finish() {
  measured_.close();
  corrected_.close();
  const auto measured = measured_.finish(), corrected = corrected_.finish();
  if (measured.n == 0) return std::nullopt;
  // The highest that is shown, at most p99.
  for (const auto& [q, percentile] : {std::pair{0.99, &record::LatencyStats::p99},
                                      {0.95, &record::LatencyStats::p95},
                                      {0.90, &record::LatencyStats::p90},
                                      {0.75, &record::LatencyStats::p75}}) {
    const auto value = measured.*percentile;
    if (!value || (q == 0.75 && *measured.n < 4)) continue;
    return Shift{q, *value, *value - *(corrected.*percentile)};
  }
  return Shift{0.5, *measured.p50, *measured.p50 - *corrected.p50};
}

SelfCheck check_client(const record::RowSource& rows, const ClientMeters& client,
                       const record::Metrics& metrics, std::optional<double> steal_fraction,
                       bool at_once, const SelfCheckLimits& limits) {
  SelfCheck out;
  Shares shares;
  std::vector<double> scratch;
  rows.for_each([&](const record::RequestRow& row) {
    add_row(row, shares);
    add_gaps(row, scratch, shares.gaps);
  });
  const auto ttft = shares.ttft.finish(), intended = shares.intended.finish();
  const auto between = shares.gaps.finish();
  check_shift(ttft, "ttft_ms", limits, out.validity);
  check_shift(between, "icl_ms", limits, out.validity);
  if (at_once) {
    const auto last = client.issue_lag_ns.quantile(1.0);
    if (last && core::to_ms(static_cast<core::Nanos>(*last)) > limits.share_ms) {
      out.validity.warnings.push_back(fmt::format("sending everything at once took {:.2f} ms",
                                                  core::to_ms(static_cast<core::Nanos>(*last))));
    }
  } else {
    check_shift(intended, "ttft_intended_ms", limits, out.validity);
  }
  check_counts(client, limits, out.validity);
  if (steal_fraction && *steal_fraction > limits.steal) {
    out.validity.refuse(
        fmt::format("the hypervisor took {:.1f} % of this host's time, at most {:g} % allowed",
                    100 * *steal_fraction, 100 * limits.steal));
  }
  if (client.late_messages > 0) {
    out.validity.warnings.push_back(
        fmt::format("{} requests were not built ahead of their send", client.late_messages));
  }
  if (metrics.retries > 0) {
    out.validity.warnings.push_back(fmt::format(
        "{} requests were sent again because a kept-alive connection had died", metrics.retries));
  }

  auto& json = out.client;
  json = Json::object();
  json["threads"] = client.loop_busy.size();
  json["loop_busy"] = client.loop_busy;
  json["scheduling"] = core::scheduling_name(client.scheduling);
  json["spin_us"] = static_cast<double>(client.spin_ns) / core::kNanosPerMicro;
  json["token_events"] = client.token_events;
  json["merged_events"] = client.merged_events;
  json["merged_fraction"] = fraction(client.merged_events, client.token_events);
  json["unstamped_events"] = client.unstamped_events;
  json["stamp_faults"] = client.stamp_faults;
  json["clock_step_max_ms"] = core::to_ms(client.clock_step_max_ns);
  json["issue_lag_ms"] = histogram_json(client.issue_lag_ns);
  json["read_lag_ms"] = histogram_json(client.read_lag_ns);
  json["ttft_share"] = shift_json(ttft);
  json["ttft_intended_share"] = shift_json(intended);
  json["icl_share"] = shift_json(between);
  json["late_messages"] = client.late_messages;
  json["connections_lost"] = client.connections_lost;
  json["held_back"] = client.held_back;
  return out;
}

}  // namespace prony::load
