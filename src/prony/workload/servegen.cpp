#include "prony/workload/servegen.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "prony/core/math.hpp"
#include "prony/core/rng.hpp"
#include "prony/workload/csv.hpp"
#include "prony/workload/lengths.hpp"
#include "prony/workload/numbers.hpp"
#include "prony/workload/rate_curve.hpp"
#include "prony/workload/streams.hpp"

namespace prony::workload {
namespace {

constexpr double kRequestsMax = 10'000'000;
/// Below it gaps are so unequal that a window of one request would need millions.
constexpr double kWeibullShapeMin = 0.1;
constexpr int64_t kClientMax = 1'000'000;
constexpr double kSecondsMax = 1e7;

// Columns of a table by name, and its numbers with bounds.
class Table {
 public:
  static Result<Table> create(std::string_view content, const std::string& path,
                              std::span<const std::string_view> names) {
    auto reader = CsvReader::create(content, path);
    if (!reader) return reader.error();
    auto columns = reader->columns(names);
    if (!columns) return columns.error();
    return Table(std::move(reader).value(), std::move(columns).value());
  }
  Result<bool> next() { return reader_.next(); }
  std::string_view text(size_t i) const { return reader_.field(columns_[i]); }
  Result<double> number(size_t i, double low, double high) const {
    const auto value = parse_number<double>(text(i));
    if (value && *value >= low && *value <= high) return *value;
    return unexpected(i, fmt::format("a number, {:g} to {:g}", low, high));
  }
  Error unexpected(size_t i, std::string_view what) const {
    return reader_.unexpected(columns_[i], what);
  }

 private:
  Table(CsvReader reader, std::vector<size_t> columns)
      : reader_(std::move(reader)), columns_(std::move(columns)) {}
  CsvReader reader_;
  std::vector<size_t> columns_;
};

using Clients = std::map<int64_t, ServeGenClient>;

Result<void> read_arrivals(std::string_view content, const std::string& path, Clients& clients) {
  constexpr std::string_view kNames[] = {"client_id", "window_start_s", "rate_req_per_s",
                                         "fit_family", "fit_shape"};
  auto table = Table::create(content, path, kNames);
  if (!table) return table.error();
  while (true) {
    const auto more = table->next();
    if (!more) return more.error();
    if (!*more) return {};
    const auto id = table->number(0, 0, kClientMax);
    const auto start = table->number(1, 0, kSecondsMax);
    const auto rate = table->number(2, 0, 1e6);
    const auto shape = table->number(4, 0.01, 1e4);
    for (const auto* number : {&id, &start, &rate, &shape}) {
      if (!*number) return number->error();
    }
    const auto family = table->text(3);
    if (family != "Gamma" && family != "Weibull" && family != "Exponential") {
      return table->unexpected(3, "Gamma, Weibull or Exponential");
    }
    if (family == "Weibull" && *shape < kWeibullShapeMin) {
      return table->unexpected(4, fmt::format("at least {} for Weibull", kWeibullShapeMin));
    }
    auto& client = clients[static_cast<int64_t>(*id)];
    if (!client.windows.empty() && client.windows.back().start_s >= *start) {
      return table->unexpected(1, "a window after the client's last");
    }
    client.windows.push_back(
        {*start, *rate, family == "Exponential" ? 1 : *shape, family == "Weibull"});
  }
}

Result<void> read_lengths(std::string_view content, const std::string& path, Clients& clients) {
  constexpr std::string_view kNames[] = {
      "client_id", "window_start_s", "quantity", "p5", "p25", "p50", "p75", "p90", "p95", "p99"};
  auto table = Table::create(content, path, kNames);
  if (!table) return table.error();
  while (true) {
    const auto more = table->next();
    if (!more) return more.error();
    if (!*more) return {};
    const bool is_input = table->text(2) == "input_tokens";
    if (!is_input && table->text(2) != "output_tokens") continue;
    const auto id = table->number(0, 0, kClientMax);
    if (!id) return id.error();
    const auto start = table->number(1, 0, kSecondsMax);
    if (!start) return start.error();
    std::array<double, 7> percentiles{};
    for (size_t i = 0; i < percentiles.size(); ++i) {
      const auto value = table->number(3 + i, i == 0 ? 0 : percentiles[i - 1], kTokensMax);
      if (!value) return value.error();
      percentiles[i] = *value;
    }
    auto& lengths = clients[static_cast<int64_t>(*id)].lengths;
    if (lengths.empty() || lengths.back().start_s < *start) {
      lengths.emplace_back().start_s = *start;
    } else if (lengths.back().start_s > *start) {
      return table->unexpected(1, "a window not before the client's last");
    }
    (is_input ? lengths.back().input : lengths.back().output) = percentiles;
  }
}

// The value at p, straight between percentiles, cut at the ends.
int32_t length_at(const std::array<double, 7>& values, double p) {
  const auto& at = kServeGenPercentiles;
  double x = values.back();
  if (p <= at.front()) {
    x = values.front();
  } else if (p < at.back()) {
    const auto i = static_cast<size_t>(std::upper_bound(at.begin(), at.end(), p) - at.begin());
    x = values[i - 1] + (values[i] - values[i - 1]) * ((p - at[i - 1]) / (at[i] - at[i - 1]));
  }
  return static_cast<int32_t>(std::clamp(std::floor(x + 0.5), 1.0, double{kTokensMax}));
}

template <class T>
const T& at_time(const std::vector<T>& windows, double t_s) {
  const auto above = std::upper_bound(windows.begin(), windows.end(), t_s,
                                      [](double t, const T& w) { return t < w.start_s; });
  return above == windows.begin() ? windows.front() : *(above - 1);
}

// The client's rate between `start_s` and `end_s`, time counted from `start_s`; nullopt where it is
// silent. A window without a row had no requests.
std::optional<RateCurve> rate_of(const ServeGenClient& client, double window_s, double start_s,
                                 double end_s) {
  std::vector<RatePiece> pieces;
  double at = start_s;
  bool any = false;
  const auto add = [&](double until, double rate) {
    until = std::min(until, end_s);
    if (until <= at) return;
    pieces.push_back({until - at, rate, rate});
    any = any || rate > 0;
    at = until;
  };
  for (const auto& window : client.windows) {
    add(window.start_s, 0);
    if (window.start_s + window_s > at) add(window.start_s + window_s, window.rate_per_s);
  }
  if (!any) return std::nullopt;
  auto curve = RateCurve::create(std::move(pieces), false, "client");
  return curve ? std::optional(std::move(curve).value()) : std::nullopt;
}

double unit_gap(const ServeGenClient::Window& window, core::Rng& rng) {
  if (!window.weibull) return rng.gamma(window.shape) / window.shape;
  const double mean = core::math::exp(core::math::log_gamma(1 + 1 / window.shape));
  return core::math::pow(rng.exponential(), 1 / window.shape) / mean;
}

}  // namespace

Result<ServeGenMix> parse_servegen(std::string_view arrivals, const std::string& arrivals_path,
                                   std::string_view lengths, const std::string& lengths_path) {
  Clients clients;
  if (auto read = read_arrivals(arrivals, arrivals_path, clients); !read) return read.error();
  if (auto read = read_lengths(lengths, lengths_path, clients); !read) return read.error();
  ServeGenMix mix;
  mix.name = trace_name(arrivals_path);
  double least = kSecondsMax;
  for (auto& [id, client] : clients) {
    if (client.windows.empty()) continue;  // lengths without arrivals
    client.id = id;
    for (size_t i = 1; i < client.windows.size(); ++i) {
      least = std::min(least, client.windows[i].start_s - client.windows[i - 1].start_s);
    }
    mix.clients.push_back(std::move(client));
  }
  if (mix.clients.empty()) {
    return invalid_argument(fmt::format("{}: found no clients", arrivals_path));
  }
  if (least < kSecondsMax) mix.window_s = least;
  return mix;
}

Result<Trace> draw_servegen(const ServeGenMix& mix, uint64_t seed, double start_s,
                            double length_s) {
  if (!(start_s >= 0 && length_s > 0 && start_s + length_s <= 2 * kSecondsMax)) {
    return invalid_argument(
        fmt::format("ServeGen window: found {} s from second {}, expected both in 0 to {:g}",
                    length_s, start_s, kSecondsMax));
  }
  Trace trace;
  int64_t silent = 0, unknown = 0;
  double expected = 0;
  for (const auto& client : mix.clients) {
    const auto curve = rate_of(client, mix.window_s, start_s, start_s + length_s);
    if (!curve) {
      ++silent;
      continue;
    }
    if (client.lengths.empty()) {
      ++unknown;
      continue;
    }
    expected += curve->expected(length_s);
    if (expected > kRequestsMax) {
      return invalid_argument(fmt::format(
          "ServeGen window: more than {:g} requests are expected in it, expected fewer: shorten it",
          kRequestsMax));
    }
    const auto stream = [&](uint64_t use) {
      return core::Rng(seed, use << 32 | static_cast<uint64_t>(client.id));
    };
    core::Rng gaps = stream(kClientArrivalStream), lengths = stream(kClientLengthStream);
    double events = 0, t_s = 0;
    while (true) {
      events += unit_gap(at_time(client.windows, start_s + t_s), gaps);
      t_s = curve->instant(events);
      if (!(t_s <= length_s)) break;
      if (static_cast<double>(trace.rows.size()) > 2 * kRequestsMax) {
        return invalid_argument(
            fmt::format("ServeGen window: more than {:g} requests were drawn, "
                        "expected fewer: shorten it",
                        2 * kRequestsMax));
      }
      const auto& law = at_time(client.lengths, start_s + t_s);
      TraceRow row;
      row.t_ns = static_cast<int64_t>(std::floor(t_s * 1e9 + 0.5));
      row.input_tokens = length_at(law.input, lengths.uniform());
      row.output_tokens = length_at(law.output, lengths.uniform());
      trace.rows.push_back(row);
    }
  }
  if (trace.rows.empty()) {
    return invalid_argument(fmt::format("ServeGen window: no request of {} in {} s from second {}",
                                        mix.name, length_s, start_s));
  }
  std::stable_sort(trace.rows.begin(), trace.rows.end(),
                   [](const TraceRow& a, const TraceRow& b) { return a.t_ns < b.t_ns; });
  // Instants keep their place in the window: the first is not moved to 0.
  trace.name = mix.name;
  trace.note = fmt::format("drawn from {} clients of ServeGen, seconds {} to {}",
                           static_cast<int64_t>(mix.clients.size()) - silent - unknown, start_s,
                           start_s + length_s);
  if (unknown > 0) trace.note += fmt::format(", {} clients without lengths left out", unknown);
  return trace;
}

}  // namespace prony::workload
