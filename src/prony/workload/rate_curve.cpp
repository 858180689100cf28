#include "prony/workload/rate_curve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "prony/core/math.hpp"
#include "prony/token/quote.hpp"
#include "prony/workload/numbers.hpp"

namespace prony::workload {
namespace {

constexpr double kRateMax = 1e9;     // requests/s; more is a mistake
constexpr double kSecondsMax = 1e7;  // 115 days
constexpr size_t kPiecesMax = 1 << 20;

double piece_rate(const RatePiece& p, double t_s) {
  const double share = t_s / p.duration_s;
  if (!p.exponential) return p.start_per_s + (p.end_per_s - p.start_per_s) * share;
  return p.start_per_s * core::math::exp(core::math::log(p.end_per_s / p.start_per_s) * share);
}

// Growth of an exponential piece [1/s]; 0 where it is (nearly) constant.
double growth(const RatePiece& p) {
  if (!p.exponential || p.start_per_s == p.end_per_s) return 0;
  return core::math::log(p.end_per_s / p.start_per_s) / p.duration_s;
}

double piece_expected(const RatePiece& p, double t_s) {
  if (const double k = growth(p); k != 0) {
    return p.start_per_s / k * (core::math::exp(k * t_s) - 1);
  }
  return (p.start_per_s + (p.end_per_s - p.start_per_s) * t_s / p.duration_s / 2) * t_s;
}

// Solves piece_expected(t) = events within the piece.
double piece_instant(const RatePiece& p, double events) {
  if (const double k = growth(p); k != 0) {
    return core::math::log(1 + k * events / p.start_per_s) / k;
  }
  // The root of a t + b t^2 / 2 = events in the form that does not cancel.
  const double a = p.start_per_s, b = (p.end_per_s - p.start_per_s) / p.duration_s;
  const double root = core::math::sqrt(std::max(a * a + 2 * b * events, 0.0));
  return a + root > 0 ? 2 * events / (a + root) : 0;
}

Error refuse(std::string_view flag, std::string_view found, std::string_view expected) {
  return invalid_argument(
      fmt::format("{}: found {}, expected {}", flag, token::quote(found), expected));
}

std::pair<std::string_view, std::string_view> halves(std::string_view text, char mark) {
  const size_t at = text.find(mark);
  if (at == std::string_view::npos) return {text, {}};
  return {text.substr(0, at), text.substr(at + 1)};
}

bool is_rate(double x) {
  return x >= 0 && x <= kRateMax;
}

}  // namespace

Result<double> parse_seconds(std::string_view text, std::string_view flag) {
  constexpr std::string_view kExpected = "a time like 90s, 250ms, 5m or 24h";
  double unit = 1;
  std::string_view number = text;
  for (const auto& [suffix, seconds] :
       {std::pair<std::string_view, double>{"ms", 1e-3}, {"s", 1.0}, {"m", 60.0}, {"h", 3600.0}}) {
    if (!text.ends_with(suffix)) continue;
    unit = seconds;
    number.remove_suffix(suffix.size());
    break;
  }
  const auto value = parse_number<double>(number);
  if (!value || !(*value >= 0 && *value * unit <= kSecondsMax)) {
    return refuse(flag, text, kExpected);
  }
  return *value * unit;
}

double cos_turns(double turns) {
  // To |x| <= 1/8 turn around a multiple of a quarter, then Taylor's series of sine or cosine.
  const double whole = std::floor(turns);
  const double t = turns - whole;
  const auto quarter = static_cast<int>(std::floor(t * 4 + 0.5));
  constexpr double kTwoPi = 6.28318530717958647692;
  const double x = (t - quarter / 4.0) * kTwoPi;
  const bool sine = quarter % 2 == 1;
  double term = sine ? x : 1, sum = term;
  for (int k = sine ? 2 : 1; k < 24; k += 2) {
    term *= -x * x / (k * (k + 1.0));
    sum += term;
  }
  // cos(x + q pi / 2): cos, -sin, -cos, sin.
  return quarter == 1 || quarter == 2 ? -sum : sum;
}

Result<RateCurve> RateCurve::create(std::vector<RatePiece> pieces, bool repeats, std::string text) {
  if (pieces.empty() || pieces.size() > kPiecesMax) {
    return invalid_argument(
        fmt::format("rate curve: found {} pieces, expected 1 to {}", pieces.size(), kPiecesMax));
  }
  RateCurve curve;
  curve.repeats_ = repeats;
  curve.text_ = std::move(text);
  double t_s = 0, events = 0;
  for (const auto& p : pieces) {
    const bool positive = p.start_per_s > 0 && p.end_per_s > 0;
    if (!(p.duration_s > 0 && p.duration_s <= kSecondsMax) || !is_rate(p.start_per_s) ||
        !is_rate(p.end_per_s) || (p.exponential && !positive)) {
      return invalid_argument(fmt::format(
          "rate curve: found {} to {} requests/s over {} s, expected rates >= 0 (> 0 if "
          "exponential) over a time > 0",
          p.start_per_s, p.end_per_s, p.duration_s));
    }
    curve.start_s_.push_back(t_s);
    curve.start_events_.push_back(events);
    t_s += p.duration_s;
    events += piece_expected(p, p.duration_s);
  }
  curve.start_s_.push_back(t_s);
  curve.start_events_.push_back(events);
  if (!(events > 0)) return invalid_argument("rate curve: found no rate above 0");
  curve.pieces_ = std::move(pieces);
  return curve;
}

Result<RateCurve> RateCurve::on_off(double rate_per_s, std::string_view on_off) {
  const auto [on_text, off_text] = halves(on_off, ',');
  const auto on = parse_seconds(on_text, "--on-off");
  const auto off = parse_seconds(off_text, "--on-off");
  if (!on || !off || !(*on > 0)) {
    return refuse("--on-off", on_off, "two times, on and off, like 5s,15s");
  }
  std::vector<RatePiece> pieces{{*on, rate_per_s, rate_per_s}};
  if (*off > 0) pieces.push_back({*off, 0, 0});
  return create(std::move(pieces), true,
                fmt::format("on-off {}/s for {} s, then none for {} s", rate_per_s, *on, *off));
}

Result<RateCurve> RateCurve::stages(std::string_view text) {
  constexpr std::string_view kExpected = "stages like 4@60s,8-16@60s";
  std::vector<RatePiece> pieces;
  std::string_view rest = text;
  do {
    const auto [stage, more] = halves(rest, ',');
    rest = more;
    const auto [rates, time] = halves(stage, '@');
    // From the second character on: a number may begin with a sign, to be refused as such.
    const size_t dash = rates.find('-', 1);
    const auto start = parse_number<double>(rates.substr(0, dash));
    const auto end =
        dash == std::string_view::npos ? start : parse_number<double>(rates.substr(dash + 1));
    const auto seconds = parse_seconds(time, "--stages");
    if (!start || !end || !seconds || !is_rate(*start) || !is_rate(*end) || !(*seconds > 0) ||
        pieces.size() == kPiecesMax) {
      return refuse("--stages", text, kExpected);
    }
    pieces.push_back({*seconds, *start, *end});
  } while (!rest.empty());
  if (text.ends_with(',')) return refuse("--stages", text, kExpected);
  auto curve = create(std::move(pieces), false, fmt::format("stages {}", text));
  if (!curve) return refuse("--stages", text, "a rate above 0");
  return curve;
}

Result<RateCurve> RateCurve::diurnal(double mean_per_s, std::string_view text) {
  constexpr int kPieces = 96;  // quarters of an hour of a day
  const auto [period_text, swing_text] = halves(text, ',');
  const auto period = parse_seconds(period_text, "--diurnal");
  const auto swing = parse_number<double>(swing_text);
  if (!period || !(*period > 0) || !swing || !(*swing >= 0 && *swing <= 1)) {
    return refuse("--diurnal", text, "a period and a swing of 0 to 1, like 24h,0.6");
  }
  const auto rate = [&](int i) {
    return std::max(0.0, mean_per_s * (1 - *swing * cos_turns(static_cast<double>(i) / kPieces)));
  };
  std::vector<RatePiece> pieces;
  for (int i = 0; i < kPieces; ++i) pieces.push_back({*period / kPieces, rate(i), rate(i + 1)});
  return create(
      std::move(pieces), true,
      fmt::format("diurnal {}/s on average, period {} s, swing {}", mean_per_s, *period, *swing));
}

Result<RateCurve> RateCurve::ramp(double start_per_s, double end_per_s, double duration_s,
                                  std::string_view strategy) {
  const bool exponential = strategy == "exponential";
  if (!exponential && strategy != "linear") {
    return refuse("--ramp-up-strategy", strategy, "linear or exponential");
  }
  return create({{duration_s, start_per_s, end_per_s, exponential}}, false,
                fmt::format("ramp {} from {}/s to {}/s over {} s", strategy, start_per_s, end_per_s,
                            duration_s));
}

size_t RateCurve::piece_of(double t_s) const {
  const auto above = std::upper_bound(start_s_.begin(), start_s_.end() - 1, t_s);
  return static_cast<size_t>(std::max<std::ptrdiff_t>(above - start_s_.begin(), 1)) - 1;
}

size_t RateCurve::piece_at(double t_s) const {
  if (repeats_) t_s -= std::floor(t_s / duration_s()) * duration_s();
  return piece_of(t_s);
}

double RateCurve::rate(double t_s) const {
  if (t_s < 0 || (!repeats_ && t_s > duration_s())) return 0;
  if (repeats_) t_s -= std::floor(t_s / duration_s()) * duration_s();
  const size_t i = piece_of(t_s);
  return piece_rate(pieces_[i], t_s - start_s_[i]);
}

double RateCurve::expected(double t_s) const {
  if (t_s <= 0) return 0;
  const double periods = repeats_ ? std::floor(t_s / duration_s()) : 0;
  t_s = std::min(t_s - periods * duration_s(), duration_s());
  const size_t i = piece_of(t_s);
  return periods * start_events_.back() + start_events_[i] +
         piece_expected(pieces_[i], t_s - start_s_[i]);
}

double RateCurve::instant(double events) const {
  const double total = start_events_.back();
  double periods = 0;
  if (repeats_) {
    periods = std::floor(events / total);
    events -= periods * total;
    // The last event of a period belongs to it, not to the pause that begins the next.
    if (events <= 0 && periods > 0) {
      events += total;
      periods -= 1;
    }
  } else if (events > total) {
    return std::numeric_limits<double>::infinity();
  }
  // The first piece that ends at or after `events`: a piece without a rate never does first.
  const auto end = std::lower_bound(start_events_.begin() + 1, start_events_.end() - 1, events);
  const auto i = static_cast<size_t>(end - start_events_.begin()) - 1;
  const double within = piece_instant(pieces_[i], std::max(0.0, events - start_events_[i]));
  return periods * duration_s() + start_s_[i] + std::min(within, pieces_[i].duration_s);
}

}  // namespace prony::workload
